"""On a GPU: eager, compiled and recorded steps agree, and a deterministic run resumes exactly."""

from pathlib import Path

import pytest
import torch

from fullmatch.algorithms import names
from tests.small_runs import again, begin, config, embeddings, finish, stop_after

pytestmark = pytest.mark.gpu


def losses(name: str, execution: str, out: Path) -> list[float]:
    """The loss of every step of a short run."""
    out.mkdir()
    semco = [f"algorithm.embeddings={embeddings(out)}"] if name.endswith("semco") else []
    one = config(
        name,
        f"training.execution={execution}",
        "training.precision=fp32",
        "training.log_every=1",
        *semco,
    )
    torch._dynamo.reset()
    run = finish(begin(one, out / "run"))
    assert not any("cannot be recorded" in note for note in run.notes)
    return [record["loss"] for record in run.folder.records()]


@pytest.mark.parametrize("name", names())
def test_executions_agree(name: str, tmp_path: Path) -> None:
    eager = losses(name, "eager", tmp_path / "eager")
    for execution in ("compiled", "graph"):
        assert losses(name, execution, tmp_path / execution) == pytest.approx(eager, rel=1e-2)


def test_checkpoints_move_between_executions(tmp_path: Path) -> None:
    stop_after(begin(config("fullflex", "training.execution=eager"), tmp_path / "run"), 4)
    text = (tmp_path / "run" / "config.toml").read_text()
    assert 'execution = "eager"' in text
    assert finish(again(tmp_path / "run")).result["steps"] == 8


def test_deterministic_resume_is_exact(tmp_path: Path) -> None:
    settings = ("training.deterministic=true", "training.execution=eager")
    whole = finish(begin(config("fullflex", *settings), tmp_path / "whole"))
    stop_after(begin(config("fullflex", *settings), tmp_path / "halves"), 4)
    halves = finish(again(tmp_path / "halves"))
    for (name, a), (_, b) in zip(whole.state.tensors(), halves.state.tensors(), strict=True):
        assert torch.equal(a, b), name
