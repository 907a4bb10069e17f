"""A process that is killed at any byte of a save leaves the checkpoint before."""

import os
import random
import resource
import signal
from pathlib import Path

import torch

from fullmatch.storage.checkpoints import CheckpointFacts, newest_checkpoint, save_checkpoint

KILLS = 25
STATE = {"weights": torch.arange(20_000.0), "step": torch.tensor(1)}


def facts(step: int) -> CheckpointFacts:
    return CheckpointFacts(
        step=step,
        config="c",
        data="d",
        metrics=("loss",),
        metrics_size=0,
        seconds=1.0,
        threads=1,
        versions={},
    )


def save_and_die(folder: Path, step: int, byte: int) -> int:
    """Save in a process whose files may have so many bytes; one more ends it. Its exit code."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (byte, resource.RLIM_INFINITY))
        save_checkpoint(folder, STATE, facts(step))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_kills_at_any_byte_leave_the_checkpoint_before(tmp_path: Path) -> None:
    place = save_checkpoint(tmp_path, STATE, facts(1))
    size = (place / "state.safetensors").stat().st_size
    rng = random.Random(0)
    for step in range(2, 2 + KILLS):
        assert save_and_die(tmp_path, step, rng.randrange(size)) == -signal.SIGXFSZ
        checkpoint, damaged = newest_checkpoint(tmp_path)
        assert checkpoint is not None
        assert (checkpoint.facts.step, damaged) == (1, [])
        assert torch.equal(checkpoint.tensors["weights"], STATE["weights"])
    assert save_and_die(tmp_path, 99, 2 * size) == 0
    newest, _ = newest_checkpoint(tmp_path)
    assert newest is not None
    assert newest.facts.step == 99
    assert not list(tmp_path.glob(".step-*"))  # nothing is left of the others
