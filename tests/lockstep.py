"""Runs that are executed in two ways, side by side: what they lose at every step."""

from collections.abc import Iterator
from pathlib import Path

import torch

from fullmatch.experiment.run import Run
from tests.small_runs import begin, config, write_embeddings


def started(name: str, execution: str, out: Path, *settings: str) -> Run:
    """A short run whose every step is logged."""
    out.mkdir()
    semco = [f"algorithm.embeddings={write_embeddings(out)}"] if name.endswith("semco") else []
    one = config(
        name,
        f"training.execution={execution}",
        "optimizer.rate=0.001",  # so that the last bit of one step does not grow in the next
        "training.log_every=1",
        *semco,
        *settings,
    )
    torch._dynamo.reset()
    return begin(one, out / "run")


def losses(run: Run) -> list[float]:
    return [record.metrics["loss"] for record in run.records() if record.metrics]


def in_step(run: Run, leader: Run) -> Iterator[tuple[float, float]]:
    """The losses of both, step by step; every step starts from the leader's state."""
    for ours, theirs in zip(run.records(), leader.records(), strict=True):
        if ours.metrics:
            yield ours.metrics["loss"], theirs.metrics["loss"]
        pairs = zip(run.state.tensors(), leader.state.tensors(), strict=True)
        with torch.no_grad():
            for (name, tensor), (other, leading) in pairs:
                assert name == other
                tensor.copy_(leading)
