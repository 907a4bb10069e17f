"""Tables that say the right numbers in the right order."""

import re
from pathlib import Path
from typing import Any

from fullmatch.report import tables
from fullmatch.storage.runs import read_run
from tests.report.written import write_run


def cells(markup: str, row: int) -> list[str]:
    body = markup.split("<tbody>")[1].split("<tr>")[1:][row]
    return re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", body)


def test_the_weakest_class_comes_first(tmp_path: Path) -> None:
    found = tables.by_class(read_run(write_run(tmp_path / "run")))
    assert cells(found, 0) == ["fox", "0.0\u00a0%", "4", tables.NONE, "cat (4)", "2"]
    assert cells(found, 1)[:4] == ["cat", "100.0\u00a0%", "4", "50.0\u00a0%"]


def test_classes_without_test_images_come_last() -> None:
    assert tables.weakest_first([None, 0.5, 0.1]) == [(2, 0.1), (1, 0.5), (0, None)]
    assert tables.percent(None) == tables.NONE


def test_labeled_images_are_no_unlabeled_ones(tmp_path: Path) -> None:
    rows = tables.facts(read_run(write_run(tmp_path / "run")))
    assert cells(rows, 1) == ["Labeled images", "6"]
    assert cells(rows, 2) == ["Unlabeled images", "14"]  # of 20 pictures
    unfinished = tables.facts(read_run(write_run(tmp_path / "early", finished=False)))
    assert "Unlabeled" not in unfinished


def test_many_rows_are_folded() -> None:
    rows = [[str(number), number] for number in range(30)]
    found = tables.folded("Rows", ["name", "number"], rows)
    assert "<details>" in found and "All 30" in found and found.count("<caption>") == 2
    assert "<details>" not in tables.folded("Rows", ["name", "number"], rows[:25])


def test_confusions_by_frequency(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run"))
    assert cells(tables.confusions(run), 0) == ["fox", "cat", "4"]
    run.scores["confusion"] = [[4, 0, 0], [0, 4, 0], [0, 0, 4]]
    assert "nothing" in tables.confusions(run)


def test_only_what_differs(tmp_path: Path) -> None:
    one = read_run(write_run(tmp_path / "one"))
    two = read_run(write_run(tmp_path / "two", algorithm="flexmatch"))
    two.config["training"]["deterministic"] = True
    two.config["algorithm"]["full"] = {"alpha": 1.0}
    found = tables.differences(["one", "two"], [one, two])
    rows = [cells(found, row) for row in range(3)]
    assert rows == [
        ["algorithm.name", "fixmatch", "flexmatch"],
        ["training.deterministic", "false", "true"],
        ["algorithm.full.alpha", tables.NONE, "1.0"],
    ]
    assert "the same" in tables.differences(["one", "one"], [one, one])


def test_comparison_of_finished_and_unfinished(tmp_path: Path) -> None:
    alone = {"gain": 0.1, "interval": [0.05, 0.15], "verdict": "helped"}
    one = read_run(write_run(tmp_path / "one", labels_only=alone))
    two = read_run(write_run(tmp_path / "two", finished=False, records=3))
    two.config["training"]["steps"] = 5000
    found = tables.comparison(["one", "two"], [one, two])
    assert cells(found, 0)[5:7] == ["66.7\u00a0%", "56.7 to 76.7\u00a0%"]
    assert cells(found, 0)[-1] == "helped (+10.0 points)"
    assert cells(found, 1)[4:6] == ["30 of 5,000", tables.NONE]


def test_comparison_of_estimates(tmp_path: Path) -> None:
    gain = {"gain": -0.04, "interval": [-0.2, 0.1], "verdict": "made no clear difference"}
    honest = {"accuracy": 0.75, "interval": [0.5, 0.9], "gain": gain}
    facts: dict[str, Any] = {"test": False, "evaluated": False}
    one = read_run(write_run(tmp_path / "one", honest=honest, **facts))
    unknown = {"sentence": "How good it is, is not known."}
    two = read_run(write_run(tmp_path / "two", honest=unknown, **facts))
    found = tables.comparison(["one", "two"], [one, two])
    estimated = ["75.0\u00a0%, estimated", "50.0 to 90.0\u00a0%"]
    assert cells(found, 0)[5:] == [*estimated, "made no clear difference (-4.0 points)"]
    assert cells(found, 1)[5:] == [tables.NONE] * 3
    assert "Calibration error" not in found and tables.ESTIMATED in found
    three = read_run(write_run(tmp_path / "three"))
    mixed = tables.comparison(["one", "three"], [one, three])
    assert cells(mixed, 0)[5:7] == estimated and cells(mixed, 1)[5] == "66.7\u00a0%"
    assert tables.ESTIMATED in mixed
    assert tables.ESTIMATED not in tables.comparison(["two", "three"], [two, three])
