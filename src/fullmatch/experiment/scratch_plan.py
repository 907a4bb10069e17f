"""Training from scratch on a user's pictures: picture size, network, batch and steps.

Candidates go from the best to the fastest; the first that gets enough steps within the time is
used. Part of the time trains the final model, the rest measures how good it is: see `total_work`.
"""

import bisect
import itertools
import math
import statistics
from collections.abc import Callable
from dataclasses import replace

import torch

from fullmatch.config import ExperimentConfig
from fullmatch.data import SemiDataset, Source
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.candidates import Candidate, list_candidates
from fullmatch.experiment.cross_validation import (
    FOLDS,
    LEAST_STEPS,
    MANY,
    VERY_FEW,
    fold_steps,
)
from fullmatch.experiment.plan_types import PlanOptions, TrainingPlan
from fullmatch.experiment.presets import own_pictures, with_steps
from fullmatch.experiment.source_scan import blank_copy
from fullmatch.plugins import is_reference

MAX_STEPS = 20_000
EPOCHS = 300  # of the unlabeled pictures; more are not worth the time
TIMED_STEPS = 3  # after one warm-up step
BASELINE_WORK = 0.2  # a step on the labels only is much faster than one with unlabeled pictures
OVERHEAD = 1.1  # loading, saving and evaluating, as a factor of the final model's steps

StepTimer = Callable[[ExperimentConfig, Source], float]  # seconds per step


def plan_scratch(
    source: Source,
    name: str,
    options: PlanOptions,
    device: torch.device,
    measure: StepTimer | None = None,
    share: float = 1.0,
) -> TrainingPlan:
    """A network with random weights, or those that the user names; `share` of the time is its."""
    available = share * options.seconds
    candidates, notes = list_candidates(
        source,
        device,
        resizable=not name.endswith(".npz") and not is_reference(name),
        model=options.model,
        weights=options.weights,
    )

    def configure(candidate: Candidate) -> ExperimentConfig:
        return candidate_config(candidate, source, name, options.algorithm, device)

    if options.steps is not None:
        # The user has decided on the time, so nothing is timed: the best network on a GPU, and a
        # small one on a CPU.
        candidate = candidates[0] if device.type == "cuda" else candidates[-2:][0]
        config = with_steps(configure(candidate), options.steps)
        return TrainingPlan(config, math.nan, (*notes, candidate.describe()))
    for candidate in candidates:
        config = configure(candidate)
        seconds = (measure or measure_step_seconds)(config, blank_copy(source, candidate.side))
        steps = steps_within(source, available / seconds)
        if steps >= candidate.enough_steps:
            break
    notes.append(candidate.describe())
    if steps < candidate.enough_steps:
        notes.append(describe_short_time(source, candidate, steps, seconds, available))
    config = with_steps(config, max(LEAST_STEPS, min(steps, useful_steps(config, source))))
    total = total_work(source, config.training.steps) * seconds
    training = OVERHEAD * config.training.steps * seconds
    return TrainingPlan(config, total, tuple(notes), training_seconds=training)


def describe_short_time(
    source: Source, candidate: Candidate, steps: int, seconds: float, available: float
) -> str:
    """That so few steps, of so many seconds each, fit into the time; and what would help."""
    least, needed = (
        total_work(source, count) * seconds / 60 for count in (LEAST_STEPS, candidate.enough_steps)
    )
    minimum = f", but at least {LEAST_STEPS} are done, in about {least:.2g} min"
    return (
        f"{steps} steps fit into {available / 60:g} min here"
        f"{minimum if steps < LEAST_STEPS else ''}; {candidate.enough_steps} would do better: "
        f"use --minutes {int(needed) + 1}"
    )


def total_work(source: Source, steps: int) -> float:
    """All work for a final model of so many steps, counted in such steps."""
    if source.test is not None:
        return (OVERHEAD + BASELINE_WORK) * steps
    labels = source.labels[source.labels >= 0]
    folds = 1 if len(labels) >= MANY else FOLDS * (2 if len(labels) < VERY_FEW else 1)
    if int(torch.bincount(labels).max()) < 2:
        folds = 0  # no label can be held out
    return OVERHEAD * steps + folds * (1 + BASELINE_WORK) * fold_steps(steps)


def steps_within(source: Source, budget: float) -> int:
    """Most steps of the final model whose total work fits the budget, counted in steps."""
    return (
        bisect.bisect_right(range(MAX_STEPS + 1), budget, key=lambda n: total_work(source, n)) - 1
    )


def candidate_config(
    candidate: Candidate, source: Source, name: str, algorithm: str, device: torch.device
) -> ExperimentConfig:
    """All settings but the number of steps."""
    preset, cpu = own_pictures(name, algorithm), device.type == "cpu"
    spec, optimizer = preset.algorithm, preset.optimizer
    labels = int((source.labels >= 0).sum())
    batch = min(labels, 16 if cpu else 64)
    # On a CPU more steps help more than more pictures per step.
    ratio = min(spec.ratio, 3) if cpu else spec.ratio
    if candidate.pretrained or candidate.weights is not None:
        optimizer = replace(optimizer, rate=optimizer.rate / 3)
    size = None if candidate.side == source.images.shape[1] else candidate.side
    return replace(
        preset,
        data=replace(preset.data, size=size),
        model=replace(
            preset.model,
            name=candidate.model,
            pretrained=candidate.pretrained,
            weights=candidate.weights,
        ),
        optimizer=optimizer,
        training=replace(
            preset.training, batch=batch, ratio=max(1, min(ratio, len(source.images) // batch))
        ),
        baseline=source.test is not None,
    )


def useful_steps(config: ExperimentConfig, source: Source) -> int:
    """Steps beyond which training longer is not worth the time."""
    per_step = config.training.batch * (config.training.ratio or 1)
    return int(min(MAX_STEPS, max(2000, EPOCHS * len(source.images) / per_step)))


def measure_step_seconds(config: ExperimentConfig, source: Source) -> float:
    """How long a training step takes here, from the median of a few."""
    steps = TIMED_STEPS + 1
    training = replace(config.training, steps=steps, log_every=1, checkpoint_every=1)
    # Recording a graph takes longer than it saves in a few steps.
    eager = replace(config, training=replace(training, execution="eager"))
    trainer = Assembly(eager, SemiDataset.from_source(source)).trainer
    clock = [record.seconds for record in trainer.run(until=steps) if record.metrics]
    return statistics.median(b - a for a, b in itertools.pairwise(clock))
