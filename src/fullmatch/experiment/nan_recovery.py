"""A NaN loss: back to the last good checkpoint, at a third of the learning rate."""

import shutil
from collections.abc import Callable, Generator
from dataclasses import replace

import torch

from fullmatch import distributed
from fullmatch.errors import NonFiniteLoss, pluralize
from fullmatch.experiment.run import Run
from fullmatch.storage.checkpoints import (
    Checkpoint,
    DamagedCheckpoint,
    load_checkpoint,
    newest_first,
)
from fullmatch.training.health import TunableSettings
from fullmatch.training.trainer import Record

RETRIES = 3


def train_with_rollback(run: Run) -> Generator[Record]:
    """A run's records; after a NaN loss it goes back and continues more slowly, up to three times.

    The steps it went back to are saved, so that the learning rate stays a function of the step: a
    run that is killed and resumed takes the same path again.
    """
    steps = run.folder.read_rollbacks()
    base_rate = run.trainer.rate
    run.trainer.rate = reduced_rate(base_rate, steps)
    run.notes += [describe_rollback(step) for step in steps]
    while True:
        try:
            yield from run.records()
            return
        except NonFiniteLoss as error:
            checkpoint = None
            if len(steps) < RETRIES:
                checkpoint = distributed.first_then_others(lambda: last_good_checkpoint(run))
            if checkpoint is None and steps:
                raise NonFiniteLoss(error.step, describe_failure(run, len(steps))) from None
            if checkpoint is None:
                raise
            restore_in_place(run, checkpoint)
            steps.append(run.state.step)
            run.trainer.rate = reduced_rate(base_rate, steps)
            if distributed.is_first():
                run.folder.write_rollbacks(steps)
            run.notes.append(describe_rollback(steps[-1]))


def restore_in_place(run: Run, checkpoint: Checkpoint) -> None:
    """Restore a state, but keep the names of metrics: recorded steps go on reporting all of them.

    The checkpoint has fewer if it was saved before the first step, or in a self-supervised start.
    """
    names = run.state.totals.names
    if names:
        totals = torch.zeros(len(names), 2)
        saved = checkpoint.tensors.get("totals", totals)
        totals[: len(saved)] = saved
        facts = replace(checkpoint.facts, metrics=tuple(names))
        checkpoint = Checkpoint(checkpoint.tensors | {"totals": totals}, facts)
    run.restore(checkpoint)


def reduced_rate(rate: Callable[[int], float], steps: list[int]) -> Callable[[int], float]:
    """The learning rate divided by three from each of these steps on."""
    rollbacks = tuple(steps)
    return lambda at: rate(at) / 3 ** sum(step <= at for step in rollbacks)


def describe_rollback(step: int) -> str:
    return f"the loss became NaN: went back to step {step}, at a third of the learning rate"


def describe_failure(run: Run, times: int) -> str:
    """What happened, and what was not tried yet; continues 'the loss became NaN at step N'."""
    optimizer = run.config.optimizer
    rate = optimizer.rate / 3 ** (times + 1)
    clip = TunableSettings(clip=optimizer.clip).lower_clip()
    message = (
        f", though the run went back {pluralize(times, 'time')}, each time to a third of the "
        f"learning rate: train again with --set optimizer.rate={rate:.4g} or {clip}"
    )
    if len(run.folder.read_records()) > 1:
        return message
    # No record ever had a number: the cause may be something other than the learning rate.
    return f"{message}, and check the algorithm's own options, in {run.folder.config}"


def last_good_checkpoint(run: Run) -> Checkpoint | None:
    """The newest checkpoint without NaN; those with NaN are deleted."""
    for place in newest_first(run.folder.checkpoints):
        try:
            checkpoint = load_checkpoint(place)
        except DamagedCheckpoint:
            continue
        floating = (t for t in checkpoint.tensors.values() if t.is_floating_point())
        if all(bool(tensor.isfinite().all()) for tensor in floating):
            return checkpoint
        shutil.rmtree(place)
    return None
