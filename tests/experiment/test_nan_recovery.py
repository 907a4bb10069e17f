"""A loss that is no number sends the run back, more slowly; three times, and not for ever."""

import json
import math
from pathlib import Path

import pytest
import torch

from fullmatch.errors import UserError
from fullmatch.experiment.nan_recovery import FILE, guarded
from fullmatch.experiment.run import Run
from tests import small_runs

SETTINGS = (
    "training.steps=12",
    "training.log_every=1",
    "training.checkpoint_every=2",
    "training.evaluate_every=12",
)


def poisoned(run: Run, at: int, above: float, *, late: bool = False) -> Run:
    """Weights turn to NaN before a step, or after it, as long as its rate is above a limit."""
    advance = run.trainer.advance

    @torch.no_grad()
    def poison() -> None:
        if run.state.step == at and float(run.state.rate) > above:
            next(run.state.student.parameters()).fill_(math.nan)

    def step() -> None:
        if late:
            advance()
            poison()
        else:
            poison()
            advance()

    run.trainer.advance = step
    return run


def begun(out: Path) -> Run:
    return small_runs.begin(small_runs.config("fixmatch", *SETTINGS), out)


def test_goes_back_and_slows_down(tmp_path: Path) -> None:
    run = poisoned(begun(tmp_path / "run"), at=7, above=0.01)
    steps = [record.step for record in guarded(run)]
    assert steps == [1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11, 12]
    assert json.loads((tmp_path / "run" / FILE).read_text()) == [6]
    records = run.folder.records()
    assert [record["step"] for record in records] == list(range(1, 13))
    assert all(math.isfinite(record["loss"]) for record in records)
    assert records[7]["rate"] < records[5]["rate"] / 2.9
    assert "went back to step 6" in " ".join(run.result["notes"])


def test_goes_back_to_the_very_start(tmp_path: Path) -> None:
    run = poisoned(begun(tmp_path / "run"), at=0, above=0.01)
    assert [record.step for record in guarded(run)] == list(range(1, 13))
    assert json.loads((tmp_path / "run" / FILE).read_text()) == [0]


def test_takes_the_same_way_after_a_kill(tmp_path: Path) -> None:
    whole = poisoned(begun(tmp_path / "whole"), at=5, above=0.01)
    list(guarded(whole))
    for record in guarded(poisoned(begun(tmp_path / "cut"), at=5, above=0.01)):
        if record.step == 9:
            break
    list(guarded(poisoned(small_runs.again(tmp_path / "cut"), at=5, above=0.01)))
    ends = [small_runs.remains(tmp_path / name) for name in ("whole", "cut")]
    assert ends[0]["model"] == ends[1]["model"] and ends[0]["metrics"] == ends[1]["metrics"]


def test_gives_up_after_three_times(tmp_path: Path) -> None:
    run = poisoned(begun(tmp_path / "run"), at=7, above=0.0)
    with pytest.raises(UserError) as error:
        list(guarded(run))
    assert json.loads((tmp_path / "run" / FILE).read_text()) == [6, 6, 6]
    # 0.03 / 3, / 9 and / 27 were tried.
    assert str(error.value) == (
        "the loss is no longer a number at step 8, though the run went back 3 times, each time to "
        "a third of the rate: train again with --set optimizer.rate=0.0003704 or "
        "--set optimizer.clip=1"
    )


def test_what_never_was_a_number_may_have_other_causes(tmp_path: Path) -> None:
    clipped = small_runs.config("fixmatch", *SETTINGS, "optimizer.clip=0.5")
    run = poisoned(small_runs.begin(clipped, tmp_path / "run"), at=0, above=0.0)
    with pytest.raises(UserError) as error:
        list(guarded(run))
    assert "at step 1, though" in str(error.value) and "optimizer.clip=0.05" in str(error.value)
    assert str(error.value).endswith(f"the algorithm's own options, in {run.folder.config}")


def test_other_errors_pass_through(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")

    def fail() -> None:
        raise UserError("something else")

    run.trainer.advance = fail
    with pytest.raises(UserError, match="something else"):
        list(guarded(run))
    assert not (tmp_path / "run" / FILE).exists()


def test_a_saved_state_without_numbers_is_passed_over(tmp_path: Path) -> None:
    run = poisoned(begun(tmp_path / "run"), at=5, above=0.01, late=True)
    assert [record.step for record in guarded(run)][:8] == [1, 2, 3, 4, 5, 6, 5, 6]
    assert json.loads((tmp_path / "run" / FILE).read_text()) == [4]
