"""What training chooses by itself: picture size, network, batch and steps, from data and machine.

Candidates go from the best to the fastest; the first that gets enough steps within the time is
used. Part of the time trains the final model, the rest measures how good it is: see `total_work`.
"""

import bisect
import itertools
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch

from fullmatch.config import ExperimentConfig
from fullmatch.data import SemiDataset, Source
from fullmatch.errors import UserError
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.candidates import Candidate, list_candidates
from fullmatch.experiment.cross_validation import (
    FOLDS,
    LEAST_STEPS,
    MANY,
    VERY_FEW,
    fold_steps,
)
from fullmatch.experiment.frozen_model import SMALL_SIDE
from fullmatch.experiment.machine import choose_device
from fullmatch.experiment.presets import own_pictures, with_steps
from fullmatch.experiment.source_scan import blank_copy
from fullmatch.models.pretrained import WeightsFile, preferred_weights

MINUTES = 10.0
PHOTO_SIDE = 64  # pictures at least this large are taken for photos
FROZEN_SIDE = 224  # to which they are brought for a frozen body
HEAD_STEPS, HEAD_RATE, HEAD_THRESHOLD = 200, 0.1, 0.7
PICTURES_PER_SECOND = 20.0  # through a frozen body at three sizes, on two cores
MAX_STEPS = 20_000
EPOCHS = 300  # of the unlabeled pictures; more are not worth the time
TIMED_STEPS = 3  # after one warm-up step
BASELINE_WORK = 0.2  # a step on the labels only is much faster than one with unlabeled pictures
OVERHEAD = 1.1  # loading, saving and evaluating, as a factor of the final model's steps

StepTimer = Callable[[ExperimentConfig, Source], float]  # seconds per step


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What the user has decided; the plan chooses the rest."""

    algorithm: str = "fullmatch"
    minutes: float | None = None
    steps: int | None = None
    model: str | None = None
    weights: Path | None = None
    pretrained: bool = True  # False: never start from weights that are on this machine

    @property
    def seconds(self) -> float:
        """The time for everything."""
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise UserError(f"--minutes is {self.minutes:g}, expected a number above 0")
        return 60 * (MINUTES if self.minutes is None else self.minutes)


@dataclass(frozen=True)
class TrainingPlan:
    """Settings for a user's pictures, and how long they will take."""

    config: ExperimentConfig
    seconds: float  # estimated for everything; NaN where nothing was timed
    notes: tuple[str, ...]
    compare_strategies: bool = (
        False  # measure several strategies on held-out labels before training
    )


def make_plan(
    source: Source,
    name: str,
    options: PlanOptions | None = None,
    *,
    device: torch.device | None = None,
    measure: StepTimer | None = None,
) -> TrainingPlan:
    """A config for these pictures that finishes within the minutes, or has so many steps."""
    options, device = options or PlanOptions(), device or choose_device()
    available = options.seconds
    if (weights := usable_weights(source, options, device)) is not None:
        return plan_frozen(source, name, options, weights, device)
    candidates, notes = list_candidates(
        source,
        device,
        resizable=not name.endswith(".npz"),
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
    return TrainingPlan(config, total, tuple(notes))


def usable_weights(
    source: Source, options: PlanOptions, device: torch.device
) -> WeightsFile | None:
    """Pretrained weights to start from, where nobody asked for something else.

    They know photos: small pictures and grayscale ones, such as digits, start from scratch.
    """
    channels, side, _ = source.images.shape
    decided = options.model or options.weights or options.steps
    if decided or channels == 1 or side < PHOTO_SIDE or not options.pretrained:
        return None
    return preferred_weights(device)


def plan_frozen(
    source: Source, name: str, options: PlanOptions, weights: WeightsFile, device: torch.device
) -> TrainingPlan:
    """A head on the features of a pretrained network: minutes on a CPU, for thousands of photos."""
    preset = own_pictures(name, options.algorithm)
    labels, pictures = int((source.labels >= 0).sum()), len(source.images)
    side, batch = source.images.shape[1], min(labels, 40)
    size = None  # arrays keep their own
    if not name.endswith(".npz"):
        size = side if side <= SMALL_SIDE else FROZEN_SIDE
    config = with_steps(preset, HEAD_STEPS)
    config = replace(
        config,
        data=replace(config.data, size=size),
        model=replace(config.model, name=weights.model, body="frozen", head="propagation", crops=0),
        optimizer=replace(config.optimizer, rate=HEAD_RATE, weight_decay=0.0),
        training=replace(config.training, batch=batch, ratio=max(1, min(5, pictures // batch))),
        baseline=source.test is not None,
    )
    if any(field.name == "threshold" for field in fields(config.algorithm)):
        # A linear head is never very confident.
        config = replace(config, algorithm=replace(config.algorithm, threshold=HEAD_THRESHOLD))
    seconds = (pictures + (len(source.test) if source.test else 0)) / PICTURES_PER_SECOND + 30
    notes = [f"a head on the features of {weights.model}, which knows photos already"]
    if device.type == "cpu" and seconds > options.seconds:
        notes.append(
            f"about {seconds / 60:.0f} min are needed for {pictures:,} pictures; "
            "fewer unlabeled pictures take less"
        )
    return TrainingPlan(config, seconds, tuple(notes), compare_strategies=True)


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
