"""Suggestions as a page, as a CSV, and as tasks for Label Studio."""

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
    format_csv,
    format_label_studio_interface,
    format_label_studio_tasks,
    path_in_csv,
    render_contact_sheet,
)
from fullmatch.inference.suggestion import Suggestion
from tests.own_pictures import picture, save

ODD = '<b>"cat" & dög</b>'


def make_suggestions(folder: Path) -> list[Suggestion]:
    names = [str(save(picture("grass", i), folder / "un" / f"a, {i} 100%ä.png")) for i in range(3)]
    return [Suggestion(name, ODD, 0.41, f"between {ODD} and dog: 41 % and 40 %") for name in names]


def test_page_is_self_contained_and_escapes_names(tmp_path: Path) -> None:
    missing = Suggestion("gone.png", "", None, "one of 3 similar pictures")
    text = render_contact_sheet("4 pictures", [*make_suggestions(tmp_path), missing])
    assert "<b>" not in text
    assert "default-src &#39;none&#39;" in text
    pictures = re.findall(r'src="data:image/jpeg;base64,([^"]*)" alt="([^"]+)"', text)
    assert [bool(pixels) for pixels, _ in pictures] == [True, True, True, False]
    assert Image.open(io.BytesIO(base64.b64decode(pictures[0][0]))).size == (48, 40)
    assert not re.search(r'(src|href)="(?!data:|#)', text)


def test_csv(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(format_csv(make_suggestions(tmp_path), tmp_path))))
    assert tuple(rows[0]) == HEADER
    assert len(rows) == 3
    assert rows[0]["path"] == "un/a, 0 100%ä.png"
    assert rows[0]["label"] == ""
    assert rows[0]["guess"] == ODD
    assert rows[0]["confidence"] == "0.4100"


def test_paths_are_relative_to_the_csv(tmp_path: Path) -> None:
    inside = str(tmp_path / "a" / "b.png")
    assert path_in_csv(inside, tmp_path) == "a/b.png"
    assert path_in_csv(inside, tmp_path / "elsewhere") == inside
    assert path_in_csv(inside, tmp_path / "a" / ".." / "a") == "b.png"
    assert path_in_csv(str(tmp_path / " b.png"), tmp_path) == "./ b.png"
    assert path_in_csv(str(tmp_path / "a2" / "b.png"), tmp_path / "a") == f"{tmp_path}/a2/b.png"


def test_label_studio(tmp_path: Path) -> None:
    suggestions = make_suggestions(tmp_path)
    tasks = json.loads(format_label_studio_tasks(suggestions, tmp_path, "run-001"))
    assert len(tasks) == 3
    address = urlsplit(tasks[1]["data"]["image"])
    assert address.path == "/data/local-files/"
    assert parse_qs(address.query) == {"d": ["un/a, 1 100%ä.png"]}
    assert tasks[1]["data"]["path"] == suggestions[1].name
    (prediction,) = tasks[1]["predictions"]
    assert prediction["model_version"] == "run-001"
    assert prediction["score"] == 0.41
    interface = ElementTree.fromstring(format_label_studio_interface(["cat", ODD]))
    image, choices = interface.find("Image"), interface.find("Choices")
    assert image is not None
    assert choices is not None
    (result,) = prediction["result"]
    assert result["from_name"] == choices.get("name")
    assert result["to_name"] == image.get("name")
    assert result["type"] == "choices"
    assert result["value"] == {"choices": [ODD]}
    assert [choice.get("value") for choice in choices] == ["cat", ODD]
