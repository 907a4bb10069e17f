"""Means over folds, and over nothing else."""

import copy
from typing import Any

import pytest

from fullmatch.reproduce import grid, provenance
from fullmatch.reproduce.grid import TABLES, Cell, Row, config_for
from fullmatch.reproduce.lines import Line, lines
from tests.reproduce.conftest import method

CIFAR = Cell("cifar10", 250)


def entry(row: Row, fold: int, best: float, *, steps: int = 100, **more: Any) -> dict[str, Any]:
    config = provenance.table_of(config_for(row, more.pop("cell", CIFAR), fold, steps))
    scores = {"last": best - 0.02, "median_last_20": best - 0.01, "best_chosen_on_test": best}
    return {
        "name": f"{row.key}-{fold}-{steps}",
        "date": "2026-01-01",
        "steps": steps,
        "code": "abc",
        "config": config,
        "scores": {"teacher": scores | {"top5": 0.9, "top5_at_best": 0.95}},
    } | more


def only(found: list[Line]) -> Line:
    (line,) = found
    return line


def test_mean_deviation_and_difference() -> None:
    row = method("FixMatch")
    entries = [entry(row, fold, best) for fold, best in enumerate((0.80, 0.82, 0.87))]
    line = only(lines(TABLES[1], [row], [CIFAR], entries))
    assert line.folds == (0, 1, 2) and line.steps == 100
    assert line.scores["best"].mean == pytest.approx(83.0)
    assert line.scores["best"].deviation == pytest.approx(2.9439, abs=1e-4)
    assert line.scores["last"].mean == pytest.approx(81.0)
    assert line.scores["median"].mean == pytest.approx(82.0)
    assert line.published and line.published.mean == 95.14
    assert line.difference == pytest.approx(83.0 - 95.14)


def test_different_steps_stand_apart() -> None:
    row = method("FixMatch")
    entries = [entry(row, 0, 0.8), entry(row, 1, 0.9, steps=200), entry(row, 1, 0.82)]
    found = lines(TABLES[1], [row], [CIFAR], entries)
    assert [(line.steps, line.folds) for line in found] == [(100, (0, 1)), (200, (1,))]
    assert found[1].scores["best"].deviation is None


def test_different_settings_stand_apart() -> None:
    row = method("FixMatch")
    other = copy.deepcopy(entry(row, 1, 0.9))
    other["config"]["optimizer"]["rate"] = 0.1
    found = lines(TABLES[1], [row], [CIFAR], [entry(row, 0, 0.8), other], code="abc")
    assert [line.marks for line in found] == [(), ("other settings",)]
    assert [line.settings for line in found] == [(), ("optimizer.rate=0.1",)]
    assert only(lines(TABLES[1], [row], [CIFAR], [other])).settings == ()  # nothing to tell it from
    longer = [entry(row, 0, 0.8, steps=200), other]
    assert [line.settings for line in lines(TABLES[1], [row], [CIFAR], longer)] == [(), ()]


def test_settings_that_stand_apart_are_named_even_if_they_are_no_more() -> None:
    row = method("FixMatch")
    asked, old = (copy.deepcopy(entry(row, 0, 0.8)) for _ in range(2))
    asked["config"]["data"]["flip"] = False
    asked["config"]["training"]["threads"] = 2  # makes no difference to what a run is
    old["config"]["optimizer"]["forgotten"] = 1
    del old["config"]["training"]["weak_gradient"]
    found = lines(TABLES[1], [row], [CIFAR], [asked, old])
    assert [line.settings for line in found] == [("data.flip=false",), ("optimizer.forgotten=1",)]


def test_settings_that_are_no_more_are_shown_and_marked() -> None:
    row = method("FixMatch")
    old = copy.deepcopy(entry(row, 0, 0.8))
    old["config"]["optimizer"]["forgotten"] = 1
    line = only(lines(TABLES[1], [row], [CIFAR], [old], code="abc"))
    assert line.marks == ("other settings",)


@pytest.mark.parametrize(("code", "mark"), [("abc", ()), ("x", ("other code",))])
def test_changed_code_is_marked(code: str, mark: tuple[str, ...]) -> None:
    row = method("FullMatch")
    assert only(lines(TABLES[1], [row], [CIFAR], [entry(row, 0, 0.8)], code=code)).marks == mark
    unknown = entry(row, 0, 0.8) | {"code": None}
    assert only(lines(TABLES[1], [row], [CIFAR], [unknown], code=code)).marks == ("unknown code",)


def test_every_ablation_finds_its_own_runs_only() -> None:
    entries = [entry(row, 0, 0.5 + i / 100) for i, row in enumerate(grid.ABLATIONS)]
    found = lines(TABLES[3], grid.ABLATIONS, [CIFAR], entries)
    assert [line.scores["best"].mean for line in found] == pytest.approx(list(range(50, 57)))
    assert all(line.published is None for line in found)  # the paper has another cell


def test_one_run_serves_three_tables() -> None:
    row, cell = method("FullMatch"), Cell("cifar100", 10_000)
    entries = [entry(row, 0, 0.78, cell=cell)]
    for number, paper in ((1, 78.56), (4, 78.46)):
        table = TABLES[number]
        found = lines(table, table.rows, [cell], entries)
        run = only([line for line in found if line.steps])
        assert run.published and run.published.mean == paper


def test_without_extra_images_nothing_stands_beside_the_paper() -> None:
    row = method("FullMatch")
    entries = [entry(row, 0, 0.9, cell=Cell("svhn-noextra", 40))]
    line = only(lines(TABLES[1], [row], [Cell("svhn-noextra", 40)], entries))
    assert line.published is None and line.difference is None
    nothing = only(lines(TABLES[1], [row], [Cell("svhn", 40)], entries))
    assert nothing.steps is None and nothing.published is not None


def test_top5() -> None:
    row, cell = method("FullFlex"), Cell("imagenet", 100_000)
    found = lines(TABLES[2], [row], [cell], [entry(row, 0, 0.5, cell=cell)])
    assert [line.measure for line in found] == ["top1", "top5"]
    assert found[1].scores["best"].mean == pytest.approx(95.0)
    assert found[1].difference == pytest.approx(95.0 - 81.38)


def test_the_newest_of_two_runs_of_a_fold_counts() -> None:
    row = method("FixMatch")
    again = entry(row, 0, 0.9, date="2026-02-01", name="again")
    line = only(lines(TABLES[1], [row], [CIFAR], [again, entry(row, 0, 0.8)]))
    assert line.folds == (0,) and line.scores["best"].mean == pytest.approx(90.0)
