"""Nothing finished is done again, nothing broken is lost, and the rest is estimated."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fullmatch.errors import UserError
from fullmatch.experiment import presets
from fullmatch.experiment import run as experiment
from fullmatch.experiment.run import Run, start
from fullmatch.reproduce import grid, plan, provenance
from fullmatch.reproduce.grid import Cell
from fullmatch.reproduce.ledger import Ledger
from fullmatch.reproduce.plan import Planned, Status, carry_out, estimate, obstacle, steps_of
from fullmatch.storage.run_folder import RunFolder
from tests.reproduce.conftest import CELL, method
from tests.reproduce.test_lines import CIFAR, entry
from tests.small_runs import finish


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Digits with smaller batches, so that a run takes a second."""
    usual = presets.digits

    def small(labels: int | None = None, algorithm: str = "fullmatch") -> presets.ExperimentConfig:
        config = usual(labels, algorithm)
        training = replace(config.training, batch=6, ratio=2, checkpoint_every=3)
        return replace(config, training=training)

    monkeypatch.setattr(presets, "digits", small)
    yield


def planned(ledger: Ledger, runs: Path, *names: str, steps: int = 8) -> list[Planned]:
    rows = [method(name) for name in names]
    return plan.plan(rows, [CELL], [0], ledger=ledger, runs=runs, steps=steps)


def follow(run: Run) -> None:
    finish(run)


def refuse(run: Run) -> None:
    raise AssertionError("nothing should be trained")


def stopped(run: Run) -> None:
    for _ in run.records():
        run.trainer.stop = True
    raise SystemExit(130)


def test_run_once_and_never_again(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    todo = planned(ledger, runs, "FixMatch", "FullMatch")
    assert [item.status for item in todo] == ["new", "new"]
    assert all("recorded" in words for _, words in carry_out(todo, ledger, follow))
    again = planned(ledger, runs, "FixMatch", "FullMatch")
    assert [item.status for item in again] == ["finished", "finished"]
    assert list(carry_out(again, ledger, refuse)) == []
    shutil.rmtree(runs)  # the ledger alone is enough
    assert [item.status for item in planned(ledger, runs, "FixMatch")] == ["finished"]
    assert [item.status for item in planned(ledger, runs, "FixMatch", steps=9)] == ["new"]


def test_an_interrupted_run_is_resumed(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    with pytest.raises(SystemExit):
        list(carry_out(planned(ledger, runs, "FixMatch"), ledger, stopped))
    todo = planned(ledger, runs, "FixMatch")
    assert [item.status for item in todo] == ["stopped"]
    list(carry_out(todo, ledger, follow))
    (found,) = ledger.entries()
    assert any("resumed at step" in note for note in found["notes"])
    assert found["code"] == provenance.CODE
    assert len(list(runs.iterdir())) == 1


def test_several_processes_share_a_table(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    done, taken, free = planned(ledger, runs, "FixMatch", "FullMatch", "UDA")
    list(carry_out([done], ledger, follow))  # as another process would
    other = start(taken.config, RunFolder(taken.folder, new=True))
    with other.folder.locked():
        outcomes = [words for _, words in carry_out([done, taken, free], ledger, follow)]
    assert outcomes[0] == "another process has done it meanwhile"
    assert "another process is training in" in outcomes[1]
    assert outcomes[2].startswith("recorded in ")
    assert [item.status for item in planned(ledger, runs, "FullMatch", "UDA")] == [
        "stopped",
        "finished",
    ]


def test_a_run_that_was_trained_but_not_recorded(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    list(carry_out(planned(ledger, runs, "FixMatch"), ledger, follow))
    shutil.rmtree(ledger.folder)
    todo = planned(ledger, runs, "FixMatch")
    assert [item.status for item in todo] == ["trained"]
    list(carry_out(todo, ledger, refuse))
    assert ledger.entries()[0]["code"] == provenance.CODE
    shutil.rmtree(ledger.folder)
    (todo[0].folder / provenance.SIGNATURE).unlink()
    list(carry_out(todo, ledger, refuse))
    assert ledger.entries()[0]["code"] is None  # nobody knows by now


def test_a_run_resumed_by_other_code_is_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    with pytest.raises(SystemExit):
        list(carry_out(planned(ledger, runs, "FixMatch"), ledger, stopped))
    monkeypatch.setattr(provenance, "CODE", "changed since")
    list(carry_out(planned(ledger, runs, "FixMatch"), ledger, follow))
    (found,) = ledger.entries()
    assert found["code"] is None and found["commit"] is None


def test_two_processes_begin_the_same_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    (item,) = planned(ledger, tmp_path / "runs", "FixMatch")
    begin = experiment.start

    def late(config: Any, folder: RunFolder) -> Run:
        begin(config, folder)  # as the other process does between our look and our start
        return begin(config, folder)

    monkeypatch.setattr(experiment, "start", late)
    ((_, words),) = carry_out([item], ledger, refuse)
    assert words == "left out: another process has just begun it"


def test_one_that_cannot_be_run_does_not_stop_the_rest(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    todo = planned(ledger, tmp_path / "runs", "SemCo", "FixMatch")
    outcomes = [words for _, words in carry_out(todo, ledger, follow)]
    assert outcomes[0].startswith("left out: ") and "embeddings" in outcomes[0]
    assert outcomes[1].startswith("recorded in ")


def test_data_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FULLMATCH_DATA", str(tmp_path))
    monkeypatch.setattr("fullmatch.data.sources.benchmarks.fetch", no_network)
    ledger = Ledger(tmp_path / "ledger")
    rows = [method("FixMatch")]
    todo = plan.plan(rows, [Cell("cifar10", 40)], [0], ledger=ledger, runs=tmp_path / "r", steps=8)
    ((_, words),) = carry_out(todo, ledger, follow)
    assert words.startswith("left out: ") and "\n" not in words
    assert not (tmp_path / "r").exists()


def no_network(*_: object, **__: object) -> None:
    raise UserError("cifar10 is not here, and cannot be fetched")


def test_estimates() -> None:
    row = method("FixMatch")
    config = grid.config_for(row, CIFAR, 0)
    item = Planned(row, CIFAR, 0, config, Path("x"), "new")
    guess = estimate(item, [])
    assert guess.source == "assumed" and guess.hours == pytest.approx(2**20 / 16.2 / 3600)
    assert 0.04 < guess.gigabytes < 0.06
    known = entry(row, 0, 0.8) | {"steps_per_second": 100.0, "device": "a GPU"}
    guess = estimate(item, [known])
    assert guess.hours == pytest.approx(2**20 / 100 / 3600) and "a GPU" in guess.source


def test_the_quickest_of_a_day_counts_unless_its_step_is_another() -> None:
    row = method("FixMatch")
    item = Planned(row, CIFAR, 0, grid.config_for(row, CIFAR, 0), Path("x"), "new")
    apart, shared, alone = (
        entry(row, 0, 0.8) | {"steps_per_second": speed, "device": "a GPU"}
        for speed in (300.0, 50.0, 100.0)
    )
    training = apart["config"]["training"] | {"weak_gradient": False}
    apart["config"] = apart["config"] | {"training": training}
    assert estimate(item, [shared, alone, apart]).speed == 100.0


def test_what_a_run_needs_is_known_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FULLMATCH_DATA", str(tmp_path))

    def needed(name: str, cell: Cell, status: Status = "new") -> str | None:
        row = method(name)
        config = grid.config_for(row, cell, 0)
        return obstacle(Planned(row, cell, 0, config, Path("x"), status))

    assert needed("FixMatch", CIFAR) is None  # it can be fetched
    assert needed("SemCo", CIFAR) == "needs embeddings"
    assert needed("SemCo", CIFAR, "stopped") is None  # it was begun, so it had them
    assert needed("FixMatch", Cell("imagenet", 100_000)) == "needs its data"
    assert needed("FixMatch", Cell("digits", 99_999)) == "needs more than its 1,297 images"


def test_speed_of_another_network_says_nothing() -> None:
    row = method("FixMatch")
    known = entry(row, 0, 0.8, cell=Cell("cifar100", 400)) | {"steps_per_second": 9.0}
    item = Planned(row, CIFAR, 0, grid.config_for(row, CIFAR, 0), Path("x"), "new")
    assert estimate(item, [known]).source == "assumed"


def test_what_is_left_of_a_stopped_run_is_estimated(tmp_path: Path) -> None:
    ledger, runs = Ledger(tmp_path / "ledger"), tmp_path / "runs"
    (item,) = planned(ledger, runs, "FixMatch", steps=32)
    whole = estimate(item, []).hours
    (item.folder / "checkpoints" / "step-000000008").mkdir(parents=True)
    assert estimate(item, []).hours == pytest.approx(whole * 3 / 4)
    assert estimate(replace(item, status="trained"), []).hours == 0


def test_budgets() -> None:
    assert steps_of(CIFAR, "fast", None) == 2**16
    assert steps_of(CIFAR, "paper", 5) == 5
    assert steps_of(CELL, "fast", None) is None
    with pytest.raises(UserError, match="steps is 0"):
        steps_of(CELL, None, 0)
