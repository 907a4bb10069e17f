"""Means over folds, and over nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from fullmatch.reproduce import grid, provenance
from fullmatch.reproduce.entry import LedgerEntry, LedgerScores
from fullmatch.reproduce.grid import TABLES, TableCell, TableRow, config_for
from fullmatch.reproduce.lines import TableLine, build_lines
from fullmatch.reproduce.tables import make_notes, to_markdown
from tests.reproduce.conftest import row_named

CIFAR = TableCell("cifar10", 250)


def make_entry(
    row: TableRow,
    fold: int,
    best: float,
    *,
    steps: int = 100,
    cell: TableCell = CIFAR,
    **fields: Any,
) -> LedgerEntry:
    scores = LedgerScores(
        last=best - 0.02,
        median_last_20=best - 0.01,
        best_chosen_on_test=best,
        interval=(0.0, 1.0),
        top5=0.9,
        ece=0.1,
        top5_at_best=0.95,
    )
    values: dict[str, Any] = {
        "name": f"{row.key}-{fold}-{steps}",
        "date": "2026-01-01",
        "command": "fullmatch train",
        "commit": "1234abc",
        "dirty": False,
        "code": "abc",
        "fingerprint": "",
        "split": None,
        "steps": steps,
        "seconds": 60.0,
        "steps_per_second": None,
        "device": "a GPU",
        "versions": {},
        "notes": (),
        "config": provenance.table_of(config_for(row, cell, fold, steps)),
        "classes": (),
        "scores": {"teacher": scores},
        "curves": {},
    }
    return LedgerEntry(**values | fields)


def with_setting(entry: LedgerEntry, section: str, name: str, value: object) -> LedgerEntry:
    changed = entry.config[section] | {name: value}
    return replace(entry, config=entry.config | {section: changed})


def without_setting(entry: LedgerEntry, section: str, name: str) -> LedgerEntry:
    changed = {key: value for key, value in entry.config[section].items() if key != name}
    return replace(entry, config=entry.config | {section: changed})


def only(lines: list[TableLine]) -> TableLine:
    (line,) = lines
    return line


def test_mean_deviation_and_difference() -> None:
    row = row_named("FixMatch")
    entries = [make_entry(row, fold, best) for fold, best in enumerate((0.80, 0.82, 0.87))]
    line = only(build_lines(TABLES[1], [row], [CIFAR], entries))
    assert line.folds == (0, 1, 2)
    assert line.steps == 100
    assert line.scores["best"].mean == pytest.approx(83.0)
    assert line.scores["best"].deviation == pytest.approx(2.9439, abs=1e-4)
    assert line.scores["last"].mean == pytest.approx(81.0)
    assert line.scores["median"].mean == pytest.approx(82.0)
    assert line.published
    assert line.published.mean == 95.14
    assert line.difference == pytest.approx(83.0 - 95.14)


def test_different_steps_are_on_separate_lines() -> None:
    row = row_named("FixMatch")
    entries = [
        make_entry(row, 0, 0.8),
        make_entry(row, 1, 0.9, steps=200),
        make_entry(row, 1, 0.82),
    ]
    lines = build_lines(TABLES[1], [row], [CIFAR], entries)
    assert [(line.steps, line.folds) for line in lines] == [(100, (0, 1)), (200, (1,))]
    assert lines[1].scores["best"].deviation is None


def test_different_settings_are_on_separate_lines() -> None:
    row = row_named("FixMatch")
    other = with_setting(make_entry(row, 1, 0.9), "optimizer", "rate", 0.1)
    lines = build_lines(TABLES[1], [row], [CIFAR], [make_entry(row, 0, 0.8), other], code="abc")
    assert [line.marks for line in lines] == [(), ("other settings",)]
    assert [line.settings for line in lines] == [(), ("optimizer.rate=0.1",)]
    # With nothing to distinguish it from, its settings are not named.
    assert only(build_lines(TABLES[1], [row], [CIFAR], [other])).settings == ()
    longer = [make_entry(row, 0, 0.8, steps=200), other]
    assert [line.settings for line in build_lines(TABLES[1], [row], [CIFAR], longer)] == [(), ()]


def test_changed_settings_are_named_even_if_they_no_longer_exist() -> None:
    row = row_named("FixMatch")
    entry = make_entry(row, 0, 0.8)
    # The number of threads does not change the result.
    changed = with_setting(with_setting(entry, "data", "flip", False), "training", "threads", 2)
    old = with_setting(entry, "optimizer", "forgotten", 1)
    old = without_setting(old, "training", "weak_gradient")
    lines = build_lines(TABLES[1], [row], [CIFAR], [changed, old])
    assert [line.settings for line in lines] == [("data.flip=false",), ("optimizer.forgotten=1",)]


def test_runs_with_settings_that_no_longer_exist_are_marked() -> None:
    row = row_named("FixMatch")
    old = with_setting(make_entry(row, 0, 0.8), "optimizer", "forgotten", 1)
    line = only(build_lines(TABLES[1], [row], [CIFAR], [old], code="abc"))
    assert line.marks == ("other settings",)


@pytest.mark.parametrize(("code", "mark"), [("abc", ()), ("x", ("other code",))])
def test_changed_code_is_marked(code: str, mark: tuple[str, ...]) -> None:
    row = row_named("FullMatch")
    entry = make_entry(row, 0, 0.8)
    assert only(build_lines(TABLES[1], [row], [CIFAR], [entry], code=code)).marks == mark
    unknown = replace(entry, code=None)
    line = only(build_lines(TABLES[1], [row], [CIFAR], [unknown], code=code))
    assert line.marks == ("unknown code",)


def test_every_ablation_has_only_its_own_runs() -> None:
    entries = [make_entry(row, 0, 0.5 + i / 100) for i, row in enumerate(grid.ABLATIONS)]
    lines = build_lines(TABLES[3], grid.ABLATIONS, [CIFAR], entries)
    assert [line.scores["best"].mean for line in lines] == pytest.approx(list(range(50, 57)))
    assert all(line.published is None for line in lines)  # the paper has another cell


def test_one_run_is_in_several_tables() -> None:
    row, cell = row_named("FullMatch"), TableCell("cifar100", 10_000)
    entries = [make_entry(row, 0, 0.78, cell=cell)]
    for number, paper in ((1, 78.56), (4, 78.46)):
        table = TABLES[number]
        lines = build_lines(table, table.rows, [cell], entries)
        run = only([line for line in lines if line.steps])
        assert run.published
        assert run.published.mean == paper


def test_svhn_without_extra_images_has_no_number_of_the_paper() -> None:
    row = row_named("FullMatch")
    entries = [make_entry(row, 0, 0.9, cell=TableCell("svhn-noextra", 40))]
    line = only(build_lines(TABLES[1], [row], [TableCell("svhn-noextra", 40)], entries))
    assert line.published is None
    assert line.difference is None
    nothing = only(build_lines(TABLES[1], [row], [TableCell("svhn", 40)], entries))
    assert nothing.steps is None
    assert nothing.published is not None


def test_top5() -> None:
    row, cell = row_named("FullFlex"), TableCell("imagenet", 100_000)
    lines = build_lines(TABLES[2], [row], [cell], [make_entry(row, 0, 0.5, cell=cell)])
    assert [line.measure for line in lines] == ["top1", "top5"]
    assert lines[1].scores["best"].mean == pytest.approx(95.0)
    assert lines[1].difference == pytest.approx(95.0 - 81.38)


def test_the_newest_of_two_runs_of_a_fold_counts() -> None:
    row = row_named("FixMatch")
    again = make_entry(row, 0, 0.9, date="2026-02-01", name="again")
    line = only(build_lines(TABLES[1], [row], [CIFAR], [again, make_entry(row, 0, 0.8)]))
    assert line.folds == (0,)
    assert line.scores["best"].mean == pytest.approx(90.0)


def test_balanced_accuracy_where_test_classes_are_uneven() -> None:
    row = row_named("FixMatch")
    entry = make_entry(row, 0, 0.8)
    assert entry.teacher
    last = entry.teacher.last
    even = replace(entry.teacher, per_class=(last, last))
    lines = build_lines(TABLES[1], [row], [CIFAR], [replace(entry, scores={"teacher": even})])
    assert [line.measure for line in lines] == ["top1"]
    uneven = replace(entry.teacher, per_class=(0.9, None, 0.5))
    lines = build_lines(TABLES[1], [row], [CIFAR], [replace(entry, scores={"teacher": uneven})])
    assert [line.measure for line in lines] == ["top1", "balanced"]
    assert lines[1].scores["last"].mean == pytest.approx(70.0)
    assert lines[1].published is None
    assert "FixMatch, balanced accuracy" in to_markdown(lines)
    assert any("mean of the classes' recalls" in note for note in make_notes(lines))
