"""The page of `check` shows every finding, escaped, in one file."""

import re
from pathlib import Path

import pytest
from PIL import Image

from fullmatch.data.quality.data_check import DataCheck
from fullmatch.data.quality.findings import DataFinding, FindingKind
from fullmatch.inference.check_page import HEADINGS, render_check_page, shorten
from tests.html_page import parse_page
from tests.own_pictures import picture, save

ODD = '<b>"a" & ä</b>.png'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (ODD.replace("/", ""), "1.png", "2.png", "3.png"):
        save(picture("brick", len(name)), tmp_path / name)
    return tmp_path


def make_check(folder: Path, *findings: DataFinding) -> DataCheck:
    return DataCheck(
        name="<own>",
        classes={"brick": 2},
        unlabeled=2,
        test={},
        sizes={},
        side=32,
        channels=3,
        findings=findings,
        open_picture=lambda name: Image.open(folder / name),
    )


def test_thumbnails_with_notes(folder: Path) -> None:
    odd = ODD.replace("/", "")
    notes = ("labeled <i>, looks like b (97%)", "labeled b, looks like c (80%)")
    finding = DataFinding(
        FindingKind.SUSPECT_LABELS, "2 labels look wrong", "kept", (odd, "gone.png"), notes=notes
    )
    text = render_check_page(make_check(folder, finding))
    assert "<b>" not in text
    assert "<i>" not in text
    assert "Check of &lt;own&gt;" in text
    assert "labeled &lt;i&gt;, looks like b (97%)" in text
    pictures = re.findall(r'src="data:image/jpeg;base64,([^"]*)"', text)
    assert [bool(jpeg) for jpeg in pictures] == [True, False]
    assert not re.search(r'(src|href)="(?!data:|#)', text)


def test_groups_are_shown_together(folder: Path) -> None:
    groups = (("1.png", "2.png"), ("3.png", "gone.png"))
    files = tuple(name for group in groups for name in group)
    notes = ("", "crop of 1.png", "", "like 3.png")
    finding = DataFinding(
        FindingKind.NEAR_DUPLICATES, "4 near duplicates", "kept", files, notes=notes, groups=groups
    )
    text = render_check_page(make_check(folder, finding))
    assert text.count('class="gallery"') == 2
    assert "<span>crop</span>" in text
    assert "crop of" not in text
    few = render_check_page(make_check(folder, finding), most_shown=3)
    assert few.count("<img") == 3
    assert "And 1 more" in few


def test_every_finding_is_in_the_summary(folder: Path) -> None:
    unreadable = DataFinding(
        FindingKind.UNREADABLE, "1 labeled picture cannot be read", "fix it", ("bad.png",), True
    )
    few = DataFinding(FindingKind.FEW_LABELS, "1 class with fewer than 4 labels", "label more")
    text = render_check_page(make_check(folder, unreadable, few))
    assert "1 labeled picture cannot be read: fix it." in text
    assert "1 class with fewer than 4 labels: label more." in text
    assert "<img" not in text
    assert "<li>bad.png</li>" in text
    assert "No problems were found." in render_check_page(make_check(folder))


def test_the_page_is_well_formed(folder: Path) -> None:
    finding = DataFinding(FindingKind.OUTLIERS, "1 picture", "kept", ("1.png",))
    parse_page(render_check_page(make_check(folder, finding)))


def test_findings_with_files_have_headings() -> None:
    without = {"EMPTY_CLASS", "FEW_LABELS", "IMBALANCE", "LOST_CLASS", "NO_UNLABELED"}
    without |= {"TOO_FEW_CLASSES", "UNKNOWN_TEST_CLASS"}
    assert {kind.name for kind in FindingKind} - without == {kind.name for kind in HEADINGS}


def test_a_note_without_the_name_beside_it() -> None:
    assert shorten("mirror image of a of b.png", ("a of b.png", "c.png")) == "mirror image"
    assert shorten("labeled cat", ("a.png",)) == "labeled cat"
