"""Finished runs are not repeated, failures do not stop the others, and costs are estimated."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fullmatch.config import ExperimentConfig
from fullmatch.errors import UserError
from fullmatch.experiment import presets
from fullmatch.experiment import start as experiment
from fullmatch.experiment.run import Run
from fullmatch.experiment.start import start
from fullmatch.reproduce import grid, provenance
from fullmatch.reproduce.grid import TableCell
from fullmatch.reproduce.ledger import Ledger
from fullmatch.reproduce.plan import (
    PlannedRun,
    RunStatus,
    estimate_cost,
    execute_runs,
    find_obstacle,
    plan_runs,
)
from fullmatch.reproduce.rates import run_rates
from fullmatch.storage.run_folder import RunFolder
from tests.reproduce.conftest import CELL, row_named
from tests.reproduce.test_lines import CIFAR, make_entry
from tests.small_runs import finish


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits with smaller batches, so that a run takes one second."""
    usual = presets.digits

    def small(labels: int | None = None, algorithm: str = "fullmatch") -> ExperimentConfig:
        config = usual(labels, algorithm)
        training = replace(config.training, batch=6, ratio=2, checkpoint_every=3)
        return replace(config, training=training)

    monkeypatch.setattr(presets, "digits", small)


FINISHED, TRAINED, STOPPED, NEW = RunStatus


def plan(ledger: Ledger, runs: Path, *names: str, steps: int = 8) -> list[PlannedRun]:
    rows = [row_named(name) for name in names]
    return plan_runs(rows, [CELL], [0], ledger=ledger, runs=runs, steps=steps)


def statuses(planned: list[PlannedRun]) -> list[RunStatus]:
    return [item.status for item in planned]


def planned_run(name: str, cell: TableCell, status: RunStatus = NEW) -> PlannedRun:
    row = row_named(name)
    return PlannedRun(row, cell, 0, grid.config_for(row, cell, 0), Path("x"), status)


def fail(run: Run) -> None:
    raise AssertionError("nothing should be trained")


def interrupt(run: Run) -> None:
    for _ in run.records():
        run.trainer.stop = True
    raise SystemExit(130)


def test_finished_runs_are_not_repeated(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    planned = plan(ledger, runs, "FixMatch", "FullMatch")
    assert statuses(planned) == [NEW, NEW]
    outcomes = list(execute_runs(planned, ledger, finish))
    assert len(outcomes) == 2
    assert all("recorded in" in each.message and not each.skipped for each in outcomes)
    again = plan(ledger, runs, "FixMatch", "FullMatch")
    assert statuses(again) == [FINISHED, FINISHED]
    assert list(execute_runs(again, ledger, fail)) == []
    shutil.rmtree(runs)  # the ledger is enough
    assert statuses(plan(ledger, runs, "FixMatch")) == [FINISHED]
    assert statuses(plan(ledger, runs, "FixMatch", steps=9)) == [NEW]


def test_interrupted_run_is_resumed(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    with pytest.raises(SystemExit):
        list(execute_runs(plan(ledger, runs, "FixMatch"), ledger, interrupt))
    planned = plan(ledger, runs, "FixMatch")
    assert statuses(planned) == [STOPPED]
    list(execute_runs(planned, ledger, finish))
    (entry,) = ledger.entries()
    assert any("resumed at step" in note for note in entry.notes)
    assert entry.code == provenance.CODE
    assert len(list(runs.iterdir())) == 1


def test_several_processes_share_a_table(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    done, taken, free = plan(ledger, runs, "FixMatch", "FullMatch", "UDA")
    list(execute_runs([done], ledger, finish))  # as another process would
    other = start(taken.config, RunFolder(taken.folder, new=True))
    with other.folder.locked():
        outcomes = list(execute_runs([done, taken, free], ledger, finish))
    assert outcomes[0].message == "another process has finished it in the meantime"
    assert "another process is training in" in outcomes[1].message
    assert outcomes[2].message.startswith("recorded in ")
    assert [outcome.skipped for outcome in outcomes] == [False, True, False]
    assert statuses(plan(ledger, runs, "FullMatch", "UDA")) == [STOPPED, FINISHED]


def test_run_that_was_trained_but_not_recorded(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    list(execute_runs(plan(ledger, runs, "FixMatch"), ledger, finish))
    shutil.rmtree(ledger.folder)
    planned = plan(ledger, runs, "FixMatch")
    assert statuses(planned) == [TRAINED]
    list(execute_runs(planned, ledger, fail))
    assert ledger.entries()[0].code == provenance.CODE
    shutil.rmtree(ledger.folder)
    (planned[0].folder / provenance.SIGNATURE).unlink()
    list(execute_runs(planned, ledger, fail))
    assert ledger.entries()[0].code is None  # nothing says which code made it


def test_code_of_a_run_resumed_by_other_code_is_unknown(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    (item,) = plan(ledger, runs, "FixMatch")
    with pytest.raises(SystemExit):
        list(execute_runs([item], ledger, interrupt))
    signature = item.folder / provenance.SIGNATURE
    assert signature.read_text() == provenance.CODE
    signature.write_text("earlier code")
    list(execute_runs(plan(ledger, runs, "FixMatch"), ledger, finish))
    (entry,) = ledger.entries()
    assert entry.code is None
    assert entry.commit is None


def test_two_processes_start_the_same_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    (item,) = plan(ledger, tmp_path / "runs", "FixMatch")

    def start_late(config: Any, folder: RunFolder) -> Run:
        start(config, folder)  # as the other process does between our check and our start
        return start(config, folder)

    monkeypatch.setattr(experiment, "start", start_late)
    (outcome,) = execute_runs([item], ledger, fail)
    assert outcome.message == "skipped: another process has just started it"
    assert outcome.skipped


def test_run_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    planned = plan(ledger, tmp_path / "runs", "SemCo", "FixMatch")
    first, second = execute_runs(planned, ledger, finish)
    assert first.skipped
    assert first.message.startswith("skipped: ")
    assert "embeddings" in first.message
    assert second.message.startswith("recorded in ")
    assert not second.skipped


def test_missing_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_to_download(*_: object, **__: object) -> None:
        raise UserError("cifar10 is not here and cannot be downloaded")

    monkeypatch.setenv("FULLMATCH_DATA", str(tmp_path))
    monkeypatch.setattr("fullmatch.data.sources.benchmarks.download_benchmark", fail_to_download)
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    rows = [row_named("FixMatch")]
    planned = plan_runs(rows, [TableCell("cifar10", 40)], [0], ledger=ledger, runs=runs, steps=8)
    (outcome,) = execute_runs(planned, ledger, finish)
    assert outcome.skipped
    assert "cannot be downloaded" in outcome.message
    assert "\n" not in outcome.message
    assert not runs.exists()


def test_cost() -> None:
    row = row_named("FixMatch")
    item = planned_run("FixMatch", CIFAR)
    cost = estimate_cost(item, [])
    assert cost.source == "assumed"
    assert not cost.exact
    assert cost.hours == pytest.approx(2**20 / 16.2 / 3600)
    assert 0.04 < cost.gigabytes < 0.06
    rates = list(run_rates([make_entry(row, 0, 0.8, steps_per_second=100.0, device="a GPU")]))
    cost = estimate_cost(item, rates, "a GPU")
    assert cost.hours == pytest.approx(2**20 / 100 / 3600)
    assert cost.source == "measured on a GPU"
    assert cost.exact
    assert not estimate_cost(item, rates, "another GPU").exact


def test_obstacles_are_known_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FULLMATCH_DATA", str(tmp_path))

    def obstacle(name: str, cell: TableCell, status: RunStatus = NEW) -> str | None:
        return find_obstacle(planned_run(name, cell, status))

    assert obstacle("FixMatch", CIFAR) is None  # it can be downloaded
    assert obstacle("SemCo", CIFAR) == "needs embeddings"
    assert obstacle("SemCo", CIFAR, STOPPED) is None  # it was started, so it had them
    assert obstacle("FixMatch", TableCell("imagenet", 100_000)) == "needs its data"
    assert obstacle("FixMatch", TableCell("digits", 99_999)) == "needs more than its 1,297 images"


def test_cost_of_a_stopped_run_is_that_of_its_remaining_steps(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    (item,) = plan(ledger, runs, "FixMatch", steps=32)
    whole = estimate_cost(item, []).hours
    (item.folder / "checkpoints" / "step-000000008").mkdir(parents=True)
    assert estimate_cost(item, []).hours == pytest.approx(whole * 3 / 4)
    assert estimate_cost(replace(item, status=TRAINED), []).hours == 0


def test_budgets() -> None:
    row = row_named("FixMatch")
    assert grid.config_for(row, CIFAR, 0, budget="fast").training.curriculum == 0.7
    assert grid.config_for(row, CIFAR, 0, 5, "fast").training.steps == 5
    assert grid.config_for(row, CIFAR, 0).training == presets.paper("cifar10", 250).training
    with pytest.raises(UserError, match="steps is 0"):
        plan_runs([row], [CELL], [0], ledger=Ledger(Path("none")), runs=Path("none"), steps=0)
