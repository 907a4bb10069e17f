"""Pictures to check in the report."""

import re

from PIL import Image

from fullmatch.reports.findings import MOST_SHOWN, render_findings
from fullmatch.storage.findings import OutlierPicture, RunFindings, SuspectPicture
from fullmatch.storage.picture_map import Thumbnails
from tests.own_pictures import picture

SUSPECT = SuspectPicture(4, "labeled/<cat>/4.png", "<cat>", "dog & fox", 0.973)


def open_picture(row: int) -> Image.Image:
    return picture("brick", row)


def test_thumbnails_with_label_and_class() -> None:
    findings = RunFindings((SUSPECT,), (OutlierPicture(9, "unlabeled/9.png"),))
    text = str(render_findings(findings, Thumbnails(open_picture=open_picture)))
    assert "Labels that look wrong (1)" in text
    assert "labeled &lt;cat&gt;" in text
    assert "looks like dog &amp; fox, 97\xa0%" in text
    assert "Unlike the labeled pictures (1)" in text
    assert len(re.findall(r'<img src="data:image/png;base64,', text)) == 2
    assert 'title="unlabeled/9.png"' in text


def test_without_pictures_their_names_remain() -> None:
    missing = Thumbnails(missing="The pictures cannot be shown: they are gone.")
    text = str(render_findings(RunFindings((SUSPECT,)), missing))
    assert "<img" not in text
    assert "4.png" in text
    assert "they are gone" in text


def test_only_the_first_are_shown() -> None:
    outliers = tuple(OutlierPicture(row, f"{row}.png") for row in range(MOST_SHOWN + 1500))
    text = str(render_findings(RunFindings((), outliers), Thumbnails(open_picture=open_picture)))
    assert text.count("<img") == MOST_SHOWN
    assert "And 1,500 more, in findings.json." in text
    assert "Labels" not in text


def test_nothing_to_check_is_no_section() -> None:
    assert not render_findings(RunFindings(), Thumbnails(missing="gone"))
