"""Accuracy against minutes, from the ledger to the files."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fullmatch.reproduce import provenance
from fullmatch.reproduce.entry import LedgerCurve, LedgerEntry
from fullmatch.reproduce.figures.minutes import group_lines, minutes
from fullmatch.reproduce.grid import config_for
from fullmatch.reproduce.ledger import Ledger
from fullmatch.reproduce.speed import (
    SPEED,
    MinutesCurve,
    SpeedLine,
    format_speed,
    speed_lines,
    speed_markdown,
)
from tests.reproduce.conftest import row_named
from tests.reproduce.test_command import call  # noqa: F401
from tests.reproduce.test_lines import CIFAR, make_entry

CURVES = {
    "seconds": LedgerCurve((50, 100), (30.0, 60.0)),
    "teacher.top1": LedgerCurve((50, 100), (0.4, 0.8)),
}


def entry_of(name: str, fold: int = 0, budget: str = "paper", **fields: Any) -> LedgerEntry:
    row = row_named(name)
    settings = provenance.table_of(config_for(row, CIFAR, fold, 100, budget))
    return make_entry(row, fold, 0.82, config=settings, **{"curves": CURVES} | fields)


def lines_of(*entries: LedgerEntry) -> list[SpeedLine]:
    return speed_lines(SPEED.rows[:1], [CIFAR], entries)


def test_runs_belong_to_the_budget_of_their_settings() -> None:
    paper, fast = lines_of(entry_of("FixMatch"), entry_of("FixMatch", budget="fast"))
    assert (paper.budget, fast.budget) == ("paper", "fast")
    assert [len(line.entries) for line in (paper, fast)] == [1, 1]
    assert format_speed(paper)[2:] == (*("paper", "100", "0", "a GPU", "1.00", "80.00", "1.00"),)


def test_what_is_missing_is_marked() -> None:
    paper, fast = lines_of(entry_of("FixMatch"))
    assert paper.entries
    assert format_speed(fast)[2:] == ("fast", "not run", "-", "-", "-", "-", "-")
    assert "| cifar10-250 | FixMatch | fast | not run |" in speed_markdown([paper, fast])


def test_folds_are_joined_and_devices_are_not() -> None:
    slow = replace(entry_of("FixMatch", 1), seconds=120.0)
    joined, _ = lines_of(entry_of("FixMatch"), slow)
    assert joined.minutes is not None
    assert joined.minutes == pytest.approx((1.5, 0.5))
    apart = lines_of(entry_of("FixMatch"), entry_of("FixMatch", 1, device="CPU (1 threads)"))
    assert [line.device for line in apart] == ["a GPU", "CPU (1 thread)", None]


def test_minutes_until_an_accuracy() -> None:
    curve = MinutesCurve((1.0, 2.0, 4.0), (40.0, 60.0, 80.0), (0.0, 0.0, 0.0))
    assert curve.minutes_to(30) == 1.0
    assert curve.minutes_to(50) == pytest.approx(1.5)
    assert curve.minutes_to(70) == pytest.approx(3.0)
    assert curve.minutes_to(90) is None


def test_target_is_the_reference_with_the_most_folds() -> None:
    long = replace(
        entry_of("FixMatch"),
        steps=200,
        config=provenance.table_of(config_for(row_named("FixMatch"), CIFAR, 0, 200)),
        scores=entry_of("FixMatch").scores
        | {"teacher": replace(entry_of("FixMatch").scores["teacher"], last=0.99)},
    )
    entries = [entry_of("FixMatch"), entry_of("FixMatch", 1), long, entry_of("FullMatch")]
    lines = speed_lines(SPEED.rows, [CIFAR], entries)
    measured = [line for line in lines if line.entries]
    assert len(measured) == 3
    assert all(line.target == pytest.approx(80.0) for line in measured)
    alone = speed_lines([row_named("FullMatch")], [CIFAR], entries)
    assert [line.target for line in alone] == [None, None]


def test_figure_has_a_line_per_method_and_budget() -> None:
    entries = [entry_of("FixMatch"), entry_of("FixMatch", 1), entry_of("FixMatch", budget="fast")]
    ((stem, lines),) = group_lines(lines_of(*entries)).items()
    assert stem == "speed-cifar10-250-a-gpu"
    (axes,) = minutes(lines).axes
    drawn = axes.get_lines()
    assert [line.get_linestyle() for line in drawn] == ["-", "--"]
    assert drawn[0].get_color() == drawn[1].get_color()
    assert [str(line.get_label()) for line in drawn] == [
        "FixMatch, paper: 80.0",
        "FixMatch, fast: 80.0",
    ]


def test_speed_is_run_recorded_and_not_run_again(
    call: Callable[..., Any],  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = "speed --cells digits-40 --algorithms fullmatch --folds 0 --steps 20"
    call(f"{command} --plan")
    assert "digits-40 FullMatch (fast) fold 0" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    call(command)
    assert "2 runs, 0 of them finished" in capsys.readouterr().out
    assert len(Ledger(tmp_path / "docs/results/runs").entries()) == 2
    out = tmp_path / "runs/reproduce"
    with (out / "speed.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["settings"], row["steps"]) for row in rows] == [("paper", "20"), ("fast", "20")]
    assert all(float(row["minutes_mean"]) > 0 for row in rows)
    assert (out / "speed-digits-40-cpu.pdf").exists()
    call(command)
    assert "2 runs, 2 of them finished" in capsys.readouterr().out
