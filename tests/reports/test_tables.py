"""The tables of a report: the right numbers in the right order."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from fullmatch.reports import tables
from fullmatch.storage.result import FinalScores, OpenSetScores, StrategyResult, Verdict
from fullmatch.storage.runs import StoredRun, read_run
from tests.written_runs import make_comparison, make_estimate, write_run


def read_cells(markup: str, row: int) -> list[str]:
    body = markup.split("<tbody>")[1].split("<tr>")[1:][row]
    return re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", body)


def read_scored(path: Path) -> tuple[StoredRun, FinalScores]:
    run = read_run(write_run(path))
    assert run.scores is not None
    return run, run.scores


def test_weakest_class_comes_first(tmp_path: Path) -> None:
    table = tables.render_class_scores(*read_scored(tmp_path / "run"))
    assert read_cells(table, 0) == ["fox", "0.0\u00a0%", "4", tables.EMPTY, "cat (4)", "2"]
    assert read_cells(table, 1)[:4] == ["cat", "100.0\u00a0%", "4", "50.0\u00a0%"]


def test_labels_are_left_out_where_they_are_not_known(tmp_path: Path) -> None:
    run, scores = read_scored(tmp_path / "run")
    assert "Labels" in tables.render_class_scores(run, scores)
    run.label_counts.clear()
    table = tables.render_class_scores(run, scores)
    assert "Labels" not in table
    assert len(read_cells(table, 0)) == 5


def test_strategies_and_why_one_is_used(tmp_path: Path) -> None:
    first = StrategyResult(name="labels only", accuracy=0.5, interval=(0.4, 0.6), seconds=0.0)
    best = replace(first, name="tuned network", chosen=True, reason="the most accurate")
    run = read_run(write_run(tmp_path / "run", strategies=(first, best)))
    table = tables.render_strategies(run)
    assert read_cells(table, 0)[3] == ""
    assert read_cells(table, 1)[3] == "used"
    assert table.count("<p>Used: tuned network, the most accurate.</p>") == 1
    older = read_run(write_run(tmp_path / "older", strategies=(replace(best, reason=""),)))
    assert "Used:" not in tables.render_strategies(older)
    assert not tables.render_strategies(read_run(write_run(tmp_path / "none")))


def test_classes_without_test_images_come_last() -> None:
    assert tables.sort_by_accuracy([None, 0.5, 0.1]) == [(2, 0.1), (1, 0.5), (0, None)]
    assert tables.format_percent(None) == tables.EMPTY


def test_labeled_pictures_do_not_count_as_unlabeled(tmp_path: Path) -> None:
    rows = tables.render_run_facts(read_run(write_run(tmp_path / "run")))
    assert read_cells(rows, 1) == ["Labeled pictures", "6"]
    assert read_cells(rows, 2) == ["Unlabeled pictures", "14"]  # of 20 pictures
    unknown = tables.render_run_facts(read_run(write_run(tmp_path / "old", unlabeled=None)))
    assert "Labeled" in unknown
    assert "Unlabeled" not in unknown
    unfinished = tables.render_run_facts(read_run(write_run(tmp_path / "early", finished=False)))
    assert "Unlabeled" not in unfinished
    assert "fixmatch" in unfinished


def test_long_tables_are_folded() -> None:
    rows = [[str(number), number] for number in range(30)]
    table = tables.render_long_table("Rows", ["name", "number"], rows)
    assert "<details>" in table
    assert "All 30" in table
    assert table.count("<caption>") == 2
    assert "<details>" not in tables.render_long_table("Rows", ["name", "number"], rows[:25])


def test_confusions_by_frequency(tmp_path: Path) -> None:
    run, scores = read_scored(tmp_path / "run")
    assert read_cells(tables.render_confusions(run, scores), 0) == ["fox", "cat", "4"]
    perfect = replace(scores, confusion=((4, 0, 0), (0, 4, 0), (0, 0, 4)))
    assert "No test picture is confused" in tables.render_confusions(run, perfect)


def test_settings_that_differ(tmp_path: Path) -> None:
    one = read_run(write_run(tmp_path / "one"))
    config = {
        "training": {"steps": 50, "deterministic": True},
        "algorithm": {"name": "flexmatch", "threshold": 0.95, "full": {"alpha": 1.0}},
    }
    two = read_run(write_run(tmp_path / "two", config=config))
    table = tables.render_differences(["one", "two"], [one, two])
    rows = [read_cells(table, row) for row in range(table.count("<tr>") - 1)]
    assert rows == [
        ["algorithm.name", "fixmatch", "flexmatch"],
        ["training.deterministic", "false", "true"],
        ["algorithm.full.alpha", tables.EMPTY, "1.0"],
    ]
    assert "the same" in tables.render_differences(["one", "one"], [one, one])


def test_comparison_of_finished_and_unfinished(tmp_path: Path) -> None:
    one = read_run(write_run(tmp_path / "one", baseline=make_comparison(0.1)))
    config = {"training": {"steps": 5000}}
    two = read_run(write_run(tmp_path / "two", finished=False, records=3, config=config))
    table = tables.render_comparison(["one", "two"], [one, two])
    assert read_cells(table, 0)[5:7] == ["66.7\u00a0%", "56.7 to 76.7\u00a0%"]
    assert read_cells(table, 0)[-1] == "helped (+10.0\u00a0points)"
    assert read_cells(table, 1)[3:6] == ["6", "30 of 5,000", tables.EMPTY]


def test_comparison_of_unknown_classes(tmp_path: Path) -> None:
    scores = OpenSetScores(images=7, auroc=0.75)
    one = read_run(write_run(tmp_path / "one", unknown_classes=("bird",), open_set=scores))
    two = read_run(write_run(tmp_path / "two"))
    table = tables.render_comparison(["one", "two"], [one, two])
    assert read_cells(table, 0)[-1] == "75.0\u00a0%"
    assert read_cells(table, 1)[-1] == tables.EMPTY
    assert "AUROC, unknown classes" in table
    assert "AUROC" not in tables.render_comparison(["two"], [two])


def test_comparison_of_estimates(tmp_path: Path) -> None:
    gain = make_comparison(-0.04, (-0.2, 0.1), Verdict.UNCLEAR)
    estimate = make_estimate(accuracy=0.75, interval=(0.5, 0.9), gain=gain)
    untested: dict[str, Any] = {"test": False, "evaluated": False}
    one = read_run(write_run(tmp_path / "one", estimate=estimate, **untested))
    two = read_run(write_run(tmp_path / "two", estimate_missing="It is not known.", **untested))
    table = tables.render_comparison(["one", "two"], [one, two])
    accuracy = ["75.0\u00a0%, estimated", "50.0 to 90.0\u00a0%"]
    assert read_cells(table, 0)[5:] == [*accuracy, "made no clear difference (-4.0\u00a0points)"]
    assert read_cells(table, 1)[5:] == [tables.EMPTY] * 3
    assert "Calibration error" not in table
    assert tables.ESTIMATED in table
    three = read_run(write_run(tmp_path / "three"))
    mixed = tables.render_comparison(["one", "three"], [one, three])
    assert read_cells(mixed, 0)[5:7] == accuracy
    assert read_cells(mixed, 1)[5] == "66.7\u00a0%"
    assert tables.ESTIMATED in mixed
    assert tables.ESTIMATED not in tables.render_comparison(["two", "three"], [two, three])


def test_comparison_has_balanced_accuracy_where_test_classes_are_uneven(tmp_path: Path) -> None:
    even = read_run(write_run(tmp_path / "even"))
    assert "Balanced accuracy" not in tables.render_comparison(["even"], [even])
    assert even.scores is not None
    scores = replace(even.scores, confusion=((8, 0, 0), (0, 2, 0), (2, 0, 0)))
    uneven = read_run(write_run(tmp_path / "uneven", teacher=scores))
    table = tables.render_comparison(["even", "uneven"], [even, uneven])
    assert "Balanced accuracy" in table
    assert read_cells(table, 0)[7] == tables.EMPTY
    assert read_cells(table, 1)[7] == "66.7\u00a0%"
