"""On a GPU: eager, compiled and recorded steps agree, and deterministic runs resume exactly."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fullmatch.algorithms import names
from fullmatch.data import ImageStore
from fullmatch.data.feed import ResidentFeed, StreamingFeed, fits_on_device
from fullmatch.errors import UserError
from fullmatch.experiment.bench import measure_speed
from tests.lockstep import losses, paired_losses, start_short_run
from tests.small_runs import STEPS, begin, config, digits, finish, resume_run, stop_after

pytestmark = pytest.mark.gpu
# Largest relative difference of losses. Eager code rounds to bfloat16, with steps of 0.8 %, after
# every operation; compiled code rounds less often. Integers such as the k of FullMatch can change
# by 1 because of a difference in the last digit.
TOLERANCE = {"fp32": 0.01, "bf16": 0.05}


@pytest.fixture(autouse=True)
def full_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """No TF32, in which every kernel rounds its operands differently."""
    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda precision: None)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("name", names())
def test_executions_agree(
    name: str, precision: str, tmp_path: Path, record_property: Callable[[str, float], None]
) -> None:
    setting = f"training.precision={precision}"
    for execution in ("compiled", "graph"):
        eager = start_short_run(name, "eager", tmp_path / f"eager for {execution}", setting)
        run = start_short_run(name, execution, tmp_path / execution, setting)
        actual, expected = zip(*paired_losses(run, eager), strict=True)
        assert len(actual) == STEPS
        assert not any("cannot be recorded" in note for note in run.notes)
        differences = [abs(a - b) / abs(b) for a, b in zip(actual, expected, strict=True)]
        record_property(f"{execution}, largest difference", max(differences))
        assert actual == pytest.approx(expected, rel=TOLERANCE[precision])


class HostStore:
    """Images that stay outside of the GPU's memory."""

    def __init__(self, images: ImageStore) -> None:
        self.images, self.shape, self.paths = images, images.shape, images.paths

    def __len__(self) -> int:
        return len(self.images)

    def read(self, index: Tensor) -> Tensor:
        return self.images.read(index)


def test_streamed_images_give_the_same_losses(tmp_path: Path) -> None:
    exact = "training.deterministic=true"
    resident = start_short_run("fullmatch", "graph", tmp_path / "resident", exact)
    assert isinstance(resident.trainer.feed, ResidentFeed)
    source = replace(digits(), images=HostStore(digits().images))
    streamed = start_short_run("fullmatch", "graph", tmp_path / "streamed", exact, source=source)
    assert isinstance(streamed.trainer.feed, StreamingFeed)
    assert losses(streamed) == losses(resident)


def test_images_that_fit_on_the_device() -> None:
    device = torch.device("cuda")
    free, _ = torch.cuda.mem_get_info(device)
    small, large = (torch.empty(1, dtype=torch.uint8).expand(n) for n in (1, free))
    assert fits_on_device(small, device)
    assert not fits_on_device(large, device)  # a step needs room too


def test_resident_images_need_no_copy_from_the_host() -> None:
    result = measure_speed(config("fullmatch"), steps=20, repeats=1, profile=True)
    assert result.copies_from_host == 0
    assert all(spent > 0 for spent in result.milliseconds.values())


def test_out_of_memory_error_has_advice(tmp_path: Path) -> None:
    run = begin(config("fullmatch"), tmp_path / "run")
    torch.cuda.set_per_process_memory_fraction(1e-6)
    try:
        with pytest.raises(UserError, match=r"needs more than .* training.batch=3"):
            finish(run)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_checkpoints_move_between_executions(tmp_path: Path) -> None:
    stop_after(begin(config("fullflex", "training.execution=eager"), tmp_path / "run"), 4)
    text = (tmp_path / "run" / "config.toml").read_text()
    assert 'execution = "eager"' in text
    assert finish(resume_run(tmp_path / "run")).result.steps == 8


def test_deterministic_resume_is_exact(tmp_path: Path) -> None:
    settings = ("training.deterministic=true", "training.execution=eager")
    whole = finish(begin(config("fullflex", *settings), tmp_path / "whole"))
    stop_after(begin(config("fullflex", *settings), tmp_path / "halves"), 4)
    halves = finish(resume_run(tmp_path / "halves"))
    for (name, a), (_, b) in zip(whole.state.tensors(), halves.state.tensors(), strict=True):
        assert torch.equal(a, b), name
