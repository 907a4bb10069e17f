"""The section with the map: its data, markers, filters and notes."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fullmatch.pages.frame import render_page, resource
from fullmatch.pages.markup import Markup
from fullmatch.pages.palette import DARK, LIGHT
from fullmatch.reports import map as report_map
from fullmatch.reports.map import assign_markers, group_classes, make_map_section, render_map
from fullmatch.reports.page import render_report
from fullmatch.storage.features import Part
from fullmatch.storage.json_files import DamagedFile
from fullmatch.storage.picture_map import ARRAYS, PictureMap, Thumbnails, write_map
from fullmatch.storage.runs import read_run
from tests.html_page import ParsedPage, parse_page
from tests.picture_maps import make_map
from tests.written_runs import ODD, write_run

KINDS = {"points": "<u2", "labels": "<i2", "predicted": "<i2", "confidence": "<u2", "tiles": "<u2"}


def parse_map(picture_map: PictureMap, thumbnails: Thumbnails | None = None) -> ParsedPage:
    section = make_map_section(picture_map, thumbnails or Thumbnails())
    return parse_page(render_page("title", "", [section]))


def read_data(markup: Markup) -> dict[str, Any]:
    """The data as the script reads it, with its arrays."""
    (text,) = re.findall(r'<script type="application/json" id="map-data">(.*)</script>', markup)
    data: dict[str, Any] = json.loads(text)
    for name in (*KINDS, "parts", "outlier", "suspect"):
        data[name] = np.frombuffer(base64.b64decode(data[name]), KINDS.get(name, "u1"))
    return data


def test_data_of_the_page() -> None:
    picture_map = make_map(50)
    rows = np.array([3, 10, 49])
    thumbnails = Thumbnails((b"one", b"two"), rows, (8, 6), (16, 16), 4, 2)
    data = read_data(render_map(picture_map, thumbnails))
    points = data["points"].reshape(50, 2) / 0xFFFF * 2 - 1
    assert points == pytest.approx(picture_map.points, abs=1e-4)
    assert data["confidence"] / 10_000 == pytest.approx(picture_map.confidence, abs=1e-4)
    for name in ("labels", "predicted", "parts", "outlier", "suspect"):
        assert data[name].tolist() == getattr(picture_map, name).tolist(), name
    assert tuple(data["names"]) == picture_map.names
    assert tuple(data["classes"]) == picture_map.classes
    tiles = np.full(50, report_map.NO_TILE)
    tiles[rows] = [0, 1, 2]
    assert data["tiles"].tolist() == tiles.tolist()
    assert [base64.b64decode(sheet) for sheet in data["sheets"]] == [b"one", b"two"]
    assert (data["tile"], data["cell"], data["columns"], data["perSheet"]) == (
        [8, 6],
        [16, 16],
        4,
        2,
    )


def test_text_from_users_cannot_end_the_data() -> None:
    names = ("</script><script>alert(1)</script>", "<!--", 'ä "猫" \\ \u2028.png')
    picture_map = replace(make_map(3, classes=ODD), names=names)
    page = parse_map(picture_map)
    assert len(page.named("script")) == 3  # the theme, the data, the map
    data = read_data(render_map(picture_map, Thumbnails()))
    assert tuple(data["names"]) == names
    assert tuple(data["classes"]) == ODD


def test_few_classes_differ_in_color() -> None:
    groups, group_of_class = group_classes(make_map())
    assert [group.name for group in groups] == ["cat", "dog", "fox"]
    assert group_of_class == [0, 1, 2]
    assert len({group.color for group in groups}) == 3
    assert {group.shape for group in groups} == {0}


@pytest.mark.parametrize("count", [1, 2, 5, 6, 10, 30])
def test_every_class_has_a_marker_of_its_own(count: int) -> None:
    classes = tuple(f"class {number}" for number in range(count))
    groups, group_of_class = group_classes(make_map(300, classes=classes))
    assert len({(group.color, group.shape) for group in groups}) == count
    assert group_of_class == list(range(count))
    assert max(group.shape for group in groups) == (count - 1) // 5  # as few shapes as possible
    assert {group.color for group in groups} <= LIGHT.keys() & DARK.keys()


def test_small_classes_share_a_marker_where_there_are_many() -> None:
    classes = tuple(f"class {number}" for number in range(1000))
    picture_map = replace(
        make_map(3000, classes=classes),
        predicted=np.concatenate([np.repeat(np.arange(500, 530), 50), np.arange(1500) % 1000]),
        labels=np.full(3000, -1),
    )
    groups, group_of_class = group_classes(picture_map)
    assert [group.name for group in groups] == [*classes[500:530], "970 other classes"]
    assert group_of_class[500:530] == list(range(30))
    assert set(group_of_class[:500] + group_of_class[530:]) == {30}
    assert len({(group.color, group.shape) for group in groups}) == 31


def test_classes_of_one_color_are_far_apart() -> None:
    """Ten classes on a line: the same color never comes twice in a row."""
    classes = tuple("abcdefghij")
    points = np.stack([np.linspace(-1, 1, 10), np.zeros(10)], axis=1).astype(np.float32)
    at_points = replace(make_map(10, classes=classes), points=points, predicted=np.arange(10))
    colors = [color for color, _ in assign_markers(at_points, list(range(10)))]
    assert all(colors.count(color) == 2 for color in colors)
    apart = [9 - colors[::-1].index(color) - colors.index(color) for color in colors]
    assert min(apart) >= 3


def test_the_script_draws_every_shape() -> None:
    script = resource("map.js", "fullmatch.reports")
    shapes = {int(number) for number in re.findall(r"shape === (\d)", script)}
    assert shapes == set(range(report_map.SHAPES))


def test_filters_say_how_many_they_show() -> None:
    picture_map = make_map(60)
    counts = {key: number for key, _, number in report_map.count_filters(picture_map)}
    assert counts == {
        "unsure": int((picture_map.confidence < 0.7).sum()),
        "wrong": int(picture_map.wrong.sum()),
        "outlier": 4,
        "suspect": 3,
    }
    assert all(counts.values())
    page = parse_map(replace(picture_map, outlier=np.zeros(60, bool)))
    boxes = {box["value"]: "disabled" in box for box in page.named("input")}
    assert boxes == {"unsure": False, "wrong": False, "outlier": True, "suspect": False}
    assert "unsure (below 70 % confidence)" in page.text


def test_parts_that_have_pictures_can_be_chosen() -> None:
    page = parse_map(make_map(60))
    assert "labeled pictures (5)" in page.text
    assert "unlabeled pictures (45)" in page.text
    assert "test pictures (10)" in page.text
    assert "all pictures (60)" in page.text
    parts = np.full(60, Part.UNLABELED, np.uint8)
    page = parse_map(replace(make_map(60), parts=parts, labels=np.full(60, -1)))
    assert "test pictures" not in page.text
    options = [option["value"] for option in page.named("option")]
    assert options == ["predicted", "confidence", "", "1"]  # nothing to color by label


def test_outlines_only_where_few_pictures_are_labeled() -> None:
    few = make_map(60)
    assert "Labeled pictures have an outline." in parse_map(few).text
    assert read_data(render_map(few, Thumbnails()))["outlinedPart"] == Part.LABELED
    many = replace(few, parts=np.full(60, Part.LABELED, np.uint8))
    assert "outline" not in parse_map(many).text
    assert read_data(render_map(many, Thumbnails()))["outlinedPart"] is None


def test_notes_about_thumbnails() -> None:
    picture_map = make_map(1200)
    some = Thumbnails((b"",), np.arange(1000), (8, 8), (16, 16), 16, 2000)
    assert "1,000 of 1,200 pictures have a thumbnail" in parse_map(picture_map, some).text
    every = replace(some, rows=np.arange(1200))
    assert "have a thumbnail" not in parse_map(picture_map, every).text
    missing = Thumbnails(missing="They were <moved>.")
    assert "They were <moved>." in parse_map(picture_map, missing).text


def test_very_many_pictures_are_sampled() -> None:
    picture_map = make_map(1000)
    rows = picture_map.choose_rows(300)
    thumbnails = Thumbnails((b"",), np.arange(0, 1000, 2), (8, 8), (16, 16), 16, 2000)
    markup = render_map(picture_map, thumbnails, most_points=300)
    assert "The map shows 300 of 1,000 pictures" in markup
    data = read_data(markup)
    assert data["names"] == [picture_map.names[row] for row in rows]
    assert data["labels"].tolist() == picture_map.labels[rows].tolist()
    even = rows % 2 == 0
    assert (data["tiles"] == np.where(even, rows // 2, report_map.NO_TILE)).all()


def test_rows_that_people_look_for_come_first() -> None:
    picture_map = make_map(1000)
    labeled = picture_map.parts == Part.LABELED
    first = labeled | picture_map.wrong | picture_map.outlier | picture_map.suspect
    rows = picture_map.choose_rows(500)
    assert len(rows) == len(set(rows.tolist())) == 500
    assert (np.diff(rows) > 0).all()
    assert set(np.flatnonzero(first)) <= set(rows.tolist())
    few = picture_map.choose_rows(50)
    assert len(few) == 50
    assert first[few].all()
    assert few.max() > 900
    assert picture_map.choose_rows(2000).tolist() == list(range(1000))


def test_part_of_a_map() -> None:
    picture_map, rows = make_map(60), np.array([5, 50])
    part = picture_map.take(rows)
    assert part.names == (picture_map.names[5], picture_map.names[50])
    for name in ARRAYS:
        assert np.array_equal(getattr(part, name), getattr(picture_map, name)[rows]), name


def test_section_of_a_report(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    without = parse_page(render_report(read_run(path)))
    assert len(without.scripts) == 1
    assert "map" not in without.values("id")
    write_map(path / "map.safetensors", make_map())
    page = parse_page(render_report(read_run(path)))
    assert "Map of the pictures" in page.text
    assert "map" in page.values("id")
    assert page.scripts[1] == resource("map.js", "fullmatch.reports")
    assert "Map of 60 pictures" in page.values("aria-label")


def test_an_empty_map_has_no_section(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    write_map(path / "map.safetensors", make_map().take(np.empty(0, np.int64)))
    assert "map" not in parse_page(render_report(read_run(path))).values("id")


def test_a_damaged_map_says_what_to_do(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    (path / "map.safetensors").write_bytes(b"nothing")
    with pytest.raises(DamagedFile, match="delete it: then the report has no map"):
        render_report(read_run(path))
