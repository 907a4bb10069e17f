"""Short runs with different executions, compared step by step."""

from collections.abc import Iterator
from pathlib import Path

import torch

from fullmatch.data import Source
from fullmatch.experiment.run import Run
from tests.small_runs import begin, config, write_embeddings


def start_short_run(
    name: str, execution: str, out: Path, *settings: str, source: Source | None = None
) -> Run:
    """A short run that logs every step."""
    out.mkdir()
    semco = [f"algorithm.embeddings={write_embeddings(out)}"] if name.endswith("semco") else []
    one = config(
        name,
        f"training.execution={execution}",
        "optimizer.rate=0.001",  # keeps rounding differences small
        "training.log_every=1",
        *semco,
        *settings,
    )
    torch._dynamo.reset()
    return begin(one, out / "run", source)


def losses(run: Run) -> list[float]:
    return [record.metrics["loss"] for record in run.records() if record.metrics]


def paired_losses(run: Run, leader: Run) -> Iterator[tuple[float, float]]:
    """The losses of both at each step; every step starts from the leader's state."""
    for ours, theirs in zip(run.records(), leader.records(), strict=True):
        if ours.metrics:
            yield ours.metrics["loss"], theirs.metrics["loss"]
        pairs = zip(run.state.tensors(), leader.state.tensors(), strict=True)
        with torch.no_grad():
            for (name, tensor), (other, leading) in pairs:
                assert name == other
                tensor.copy_(leading)
