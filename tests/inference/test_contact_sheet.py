"""Suggestions written down: a page, a table, and tasks for Label Studio."""

import base64
import csv
import io
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

from PIL import Image

from fullmatch.inference.contact_sheet import (
    HEADER,
    contact_sheet,
    label_studio_interface,
    label_studio_tasks,
    reference,
    table,
)
from fullmatch.inference.suggestion import Suggestion
from tests.own_pictures import picture, save

ODD = '<b>"cat" & dög</b>'


def suggestions(folder: Path) -> list[Suggestion]:
    names = [str(save(picture("grass", i), folder / "un" / f"a, {i} 100%ä.png")) for i in range(3)]
    return [Suggestion(name, ODD, 0.41, f"between {ODD} and dog: 41 % and 40 %") for name in names]


def test_the_page_needs_nothing_else_and_escapes_names(tmp_path: Path) -> None:
    found = [*suggestions(tmp_path), Suggestion("gone.png", "", None, "stands for 1")]
    text = contact_sheet("4 pictures", found)
    assert "<b>" not in text and "default-src &#x27;none&#x27;" in text
    pictures = re.findall(r'src="data:image/jpeg;base64,([^"]*)" alt="([^"]+)"', text)
    assert [bool(pixels) for pixels, _ in pictures] == [True, True, True, False]
    assert Image.open(io.BytesIO(base64.b64decode(pictures[0][0]))).size == (48, 40)
    assert not re.search(r'(src|href)="(?!data:|#)', text)


def test_the_table(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(table(suggestions(tmp_path), tmp_path))))
    assert tuple(rows[0]) == HEADER and len(rows) == 3
    assert rows[0]["path"] == "un/a, 0 100%ä.png" and rows[0]["label"] == ""
    assert rows[0]["guess"] == ODD and rows[0]["confidence"] == "0.4100"


def test_a_csv_names_pictures_from_where_it_is(tmp_path: Path) -> None:
    inside = str(tmp_path / "a" / "b.png")
    assert reference(inside, tmp_path) == "a/b.png"
    assert reference(inside, tmp_path / "elsewhere") == inside
    assert reference(inside, tmp_path / "a" / ".." / "a") == "b.png"
    assert reference(str(tmp_path / " b.png"), tmp_path) == "./ b.png"
    assert reference(str(tmp_path / "a2" / "b.png"), tmp_path / "a") == f"{tmp_path}/a2/b.png"


def test_label_studio(tmp_path: Path) -> None:
    found = suggestions(tmp_path)
    tasks = json.loads(label_studio_tasks(found, tmp_path, "run-001"))
    assert len(tasks) == 3
    address = urlsplit(tasks[1]["data"]["image"])
    assert address.path == "/data/local-files/"
    assert parse_qs(address.query) == {"d": ["un/a, 1 100%ä.png"]}
    assert tasks[1]["data"]["path"] == found[1].name
    (prediction,) = tasks[1]["predictions"]
    assert prediction["model_version"] == "run-001" and prediction["score"] == 0.41
    interface = ElementTree.fromstring(label_studio_interface(["cat", ODD]))
    image, choices = interface.find("Image"), interface.find("Choices")
    assert image is not None and choices is not None
    (result,) = prediction["result"]
    assert result["from_name"] == choices.get("name") and result["to_name"] == image.get("name")
    assert result["type"] == "choices" and result["value"] == {"choices": [ODD]}
    assert [choice.get("value") for choice in choices] == ["cat", ODD]
