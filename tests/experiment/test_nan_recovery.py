"""After a NaN loss a run goes back and continues more slowly, up to three times."""

import math
from pathlib import Path

import pytest
import torch

from fullmatch.errors import NonFiniteLoss, UserError
from fullmatch.experiment.nan_recovery import train_with_rollback
from fullmatch.experiment.repair import find_unusable
from fullmatch.experiment.run import Run
from tests import small_runs

SETTINGS = (
    "training.steps=12",
    "training.log_every=1",
    "training.checkpoint_every=2",
    "training.evaluate_every=12",
)


def with_nan(run: Run, at: int, above: float, *, late: bool = False) -> Run:
    """Make weights NaN before a step, or after it, while the learning rate is above a limit."""
    advance = run.trainer.advance

    @torch.no_grad()
    def insert_nan() -> None:
        if run.state.step == at and run.state.rates[0].value() > above:
            next(run.state.student.parameters()).fill_(math.nan)

    def step() -> None:
        if late:
            advance()
            insert_nan()
        else:
            insert_nan()
            advance()

    run.trainer.advance = step
    return run


def begin(out: Path) -> Run:
    return small_runs.begin(small_runs.config("fixmatch", *SETTINGS), out)


def test_goes_back_and_slows_down(tmp_path: Path) -> None:
    run = with_nan(begin(tmp_path / "run"), at=7, above=0.01)
    steps = [record.step for record in train_with_rollback(run)]
    assert steps == [1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11, 12]
    assert run.folder.read_rollbacks() == [6]
    records = run.folder.read_records()
    assert [record.step for record in records] == list(range(1, 13))
    assert all(math.isfinite(record.metrics["loss"]) for record in records)
    assert records[7].metrics["rate"] < records[5].metrics["rate"] / 2.9
    note = "the loss became NaN: went back to step 6, at a third of the learning rate"
    assert run.result.notes[-1] == note


def test_goes_back_to_the_very_start(tmp_path: Path) -> None:
    run = with_nan(begin(tmp_path / "run"), at=0, above=0.01)
    assert [record.step for record in train_with_rollback(run)] == list(range(1, 13))
    assert run.folder.read_rollbacks() == [0]


def test_a_killed_run_takes_the_same_path(tmp_path: Path) -> None:
    whole = with_nan(begin(tmp_path / "whole"), at=5, above=0.01)
    list(train_with_rollback(whole))
    for record in train_with_rollback(with_nan(begin(tmp_path / "cut"), at=5, above=0.01)):
        if record.step == 9:
            break
    list(train_with_rollback(with_nan(small_runs.resume_run(tmp_path / "cut"), at=5, above=0.01)))
    ends = [small_runs.read_outputs(tmp_path / name) for name in ("whole", "cut")]
    assert ends[0]["model"] == ends[1]["model"]
    assert ends[0]["metrics"] == ends[1]["metrics"]


def test_gives_up_after_three_times(tmp_path: Path) -> None:
    run = with_nan(begin(tmp_path / "run"), at=7, above=0.0)
    with pytest.raises(NonFiniteLoss) as error:
        list(train_with_rollback(run))
    assert run.folder.read_rollbacks() == [6, 6, 6]
    # 0.03 / 3, / 9 and / 27 were tried.
    assert str(error.value) == (
        "the loss became NaN at step 8, though the run went back 3 times, each time to a third of "
        "the learning rate: train again with --set optimizer.rate=0.0003704 or "
        "--set optimizer.clip=1"
    )


def test_nan_from_the_start_may_have_other_causes(tmp_path: Path) -> None:
    clipped = small_runs.config("fixmatch", *SETTINGS, "optimizer.clip=0.5")
    run = with_nan(small_runs.begin(clipped, tmp_path / "run"), at=0, above=0.0)
    with pytest.raises(NonFiniteLoss) as error:
        list(train_with_rollback(run))
    assert "at step 1, though" in str(error.value)
    assert "optimizer.clip=0.05" in str(error.value)
    assert str(error.value).endswith(f"the algorithm's own options, in {run.folder.config}")


def test_other_errors_pass_through(tmp_path: Path) -> None:
    run = begin(tmp_path / "run")

    def fail() -> None:
        raise UserError("something else")

    run.trainer.advance = fail
    with pytest.raises(UserError, match="something else"):
        list(train_with_rollback(run))
    assert not run.folder.rollbacks.exists()


def test_a_checkpoint_with_nan_is_passed_over(tmp_path: Path) -> None:
    run = with_nan(begin(tmp_path / "run"), at=5, above=0.01, late=True)
    assert [record.step for record in train_with_rollback(run)][:8] == [1, 2, 3, 4, 5, 6, 5, 6]
    assert run.folder.read_rollbacks() == [4]


def test_weights_that_become_nan_in_the_last_step(tmp_path: Path) -> None:
    """No loss follows that would show it, and the model would be useless."""
    run = with_nan(begin(tmp_path / "run"), at=11, above=0.005, late=True)
    steps = [record.step for record in train_with_rollback(run)]
    assert steps[-3:] == [12, 11, 12]
    assert run.folder.read_rollbacks() == [10]
    assert not find_unusable(run.folder)
