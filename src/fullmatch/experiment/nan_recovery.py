"""A loss that is no number: back to the last good checkpoint, at a third of the rate."""

import json
import math
import shutil
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, zeros_like

from fullmatch.errors import UserError, many
from fullmatch.experiment.run import Run
from fullmatch.storage import checkpoints as checkpoint
from fullmatch.training.health import Knobs
from fullmatch.training.trainer import Record

TRIES = 3
FILE = "rollbacks.json"  # steps from which the rate is a third of what it was


def guarded(run: Run) -> Iterator[Record]:
    """A run's records; at most three times it goes back and continues more slowly.

    Where it went back is kept beside the run, and so the rate stays a function of the step: a run
    that is killed and resumed takes the same way again.
    """
    path = run.folder.path / FILE
    steps: list[int] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    usual = run.trainer.rate
    run.trainer.rate = slowed(usual, steps)
    run.notes += [said(step) for step in steps]
    while True:
        try:
            yield from run.records()
            return
        except UserError:
            if not lost(run):
                raise
            state = last_good(run) if len(steps) < TRIES else None
            if state is None and steps:
                raise UserError(given_up(run, len(steps))) from None
            if state is None:
                raise
            back_to(run, *state)
            steps.append(run.state.step)
            run.trainer.rate = slowed(usual, steps)
            run.folder.write(path, json.dumps(steps) + "\n")
            run.notes.append(said(steps[-1]))


def back_to(run: Run, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Restore a state in place: a recorded step goes on writing to the sums that it knows."""
    totals = run.state.totals
    sums = totals.sums
    if sums is not None and not facts["metrics"]:  # saved before the first step
        tensors = tensors | {"totals": zeros_like(sums).cpu()}
        facts = facts | {"metrics": totals.names}
    run.restore(tensors, facts)
    if sums is not None and totals.sums is not None:
        totals.sums = sums.copy_(totals.sums)


def slowed(rate: Callable[[int], float], steps: list[int]) -> Callable[[int], float]:
    kept = tuple(steps)
    return lambda at: rate(at) / 3 ** sum(step <= at for step in kept)


def said(step: int) -> str:
    return f"the loss was no number: went back to step {step}, on at a third of the rate"


def given_up(run: Run, times: int) -> str:
    """What happened, and what was not tried yet."""
    optimizer, records = run.config.optimizer, run.folder.records()
    rate = optimizer.rate / 3 ** (times + 1)
    clip = Knobs(clip=optimizer.clip).lower_clip()
    words = (
        f"the loss is no longer a number at step {records[-1]['step']}, though the run went back "
        f"{many(times, 'time')}, each time to a third of the rate: train again with "
        f"--set optimizer.rate={rate:.4g} or {clip}"
    )
    if len(records) > 1:
        return words
    # No line of the log ever had a number: the cause may be another than the rate.
    return f"{words}, and look at the algorithm's own options, in {run.folder.config}"


def lost(run: Run) -> bool:
    """Whether the newest line of the log says that the loss is no number."""
    records = run.folder.records()
    return bool(records) and not math.isfinite(records[-1].get("loss", 0.0))


def last_good(run: Run) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The newest checkpoint that holds numbers only; poisoned ones are removed."""
    for place in checkpoint.newest_first(run.folder.checkpoints):
        try:
            tensors, facts = checkpoint.load(place)
        except checkpoint.Damaged:
            continue
        if all(bool(t.isfinite().all()) for t in tensors.values() if t.is_floating_point()):
            return tensors, facts
        shutil.rmtree(place)
    return None
