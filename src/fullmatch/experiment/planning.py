"""What training chooses by itself: picture size, network, batches and steps, from data and machine.

Candidates go from the best to the quickest; the first that gets enough steps into the time is
taken. Part of the time trains the final model, the rest finds out how good it is: see `work`.
"""

import bisect
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from fullmatch import data
from fullmatch.config import ExperimentConfig
from fullmatch.core import Appearance
from fullmatch.data import SemiDataset, Source, TensorStore
from fullmatch.data.dataset import sort_classes
from fullmatch.data.sources.picture_files import PICTURE_SIZES
from fullmatch.data.sources.survey import survey_pictures
from fullmatch.data.stores import pictures
from fullmatch.errors import UserError
from fullmatch.experiment.build import Assembly, choose_device
from fullmatch.experiment.candidates import Choice, choices
from fullmatch.experiment.cross_validation import (
    FOLDS,
    LEAST_STEPS,
    MANY,
    VERY_FEW,
    fold_steps,
)
from fullmatch.experiment.presets import own_pictures, with_steps

MINUTES = 10.0
LEAST, MOST = LEAST_STEPS, 20_000  # steps
EPOCHS = 300  # of the unlabeled pictures; more are not worth the time
TRIED = 3  # steps that are timed, after one that warms up


@dataclass(frozen=True)
class Plan:
    config: ExperimentConfig
    seconds: float  # that everything will take here, an estimate; nan where nothing was timed
    notes: tuple[str, ...]


def plan(
    source: Source,
    name: str,
    *,
    algorithm: str = "fullmatch",
    minutes: float | None = None,
    steps: int | None = None,
    model: str | None = None,
    weights: Path | None = None,
    device: torch.device | None = None,
    measure: "Callable[[ExperimentConfig, Source], float] | None" = None,
) -> Plan:
    """A config for these pictures that is done here within the minutes, or has so many steps."""
    device = device or choose_device()
    measure = measure or step_seconds
    if minutes is not None and not 0 < minutes < float("inf"):
        raise UserError(f"--minutes is {minutes:g}, expected a number above 0")
    time = 60 * (MINUTES if minutes is None else minutes)
    resizable = not name.endswith(".npz")
    options, notes = choices(source, device, resizable=resizable, model=model, weights=weights)
    if steps is not None:
        # Whoever counts steps has decided on the time, so nothing is timed; as a rule, a GPU bears
        # the best network, and a processor a small one.
        choice = options[0] if device.type == "cuda" else options[-2:][0]
        config = with_steps(chosen(choice, source, name, algorithm, device), steps)
        return Plan(config, math.nan, (*notes, named(choice)))
    for choice in options:
        config = chosen(choice, source, name, algorithm, device)
        seconds = measure(config, resized(source, choice.side))
        fitting = most_within(source, time / seconds)
        if fitting >= choice.enough:
            break
    notes.append(named(choice))
    if fitting < choice.enough:
        least, needed = (work(source, n) * seconds / 60 for n in (LEAST, choice.enough))
        longer = f", and {LEAST} are taken at least, in about {least:.2g} min"
        notes.append(
            f"{fitting} steps fit into {time / 60:g} min here{longer if fitting < LEAST else ''}; "
            f"{choice.enough} would do better: give --minutes {int(needed) + 1}"
        )
    config = with_steps(config, max(LEAST, min(fitting, most_steps(config, source))))
    return Plan(config, work(source, config.training.steps) * seconds, tuple(notes))


def named(choice: Choice) -> str:
    return f"network {choice.model} on pictures of {choice.side}x{choice.side}"


def work(source: Source, steps: int) -> float:
    """All that happens beside the steps of the final model and with them, in such steps."""
    alone = 0.2  # the same network on the labels alone is much quicker
    if source.test is not None:
        return (1.1 + alone) * steps
    known = source.labels[source.labels >= 0]
    parts = 1 if len(known) >= MANY else FOLDS * (2 if len(known) < VERY_FEW else 1)
    if int(torch.bincount(known).max()) < 2:
        parts = 0  # no class has a label to spare
    return 1.1 * steps + parts * (1 + alone) * fold_steps(steps)


def most_within(source: Source, budget: float) -> int:
    """Steps of the final model that leave time, counted in steps, for all else."""
    return bisect.bisect_right(range(MOST + 1), budget, key=lambda n: work(source, n)) - 1


def chosen(
    choice: Choice, source: Source, name: str, algorithm: str, device: torch.device
) -> ExperimentConfig:
    """All but the number of steps."""
    usual, cpu = own_pictures(name, algorithm), device.type == "cpu"
    spec, optimizer = usual.algorithm, usual.optimizer
    labels = int((source.labels >= 0).sum())
    batch = min(labels, 16 if cpu else 64)
    # A processor does better with more steps than with more pictures a step.
    ratio = min(spec.ratio, 3) if cpu else spec.ratio
    if choice.pretrained or choice.weights is not None:
        optimizer = replace(optimizer, rate=optimizer.rate / 3)
    size = None if choice.side == source.images.shape[1] else choice.side
    return replace(
        usual,
        data=replace(usual.data, size=size),
        model=replace(
            usual.model,
            name=choice.model,
            pretrained=choice.pretrained,
            weights=choice.weights,
        ),
        optimizer=optimizer,
        training=replace(
            usual.training, batch=batch, ratio=max(1, min(ratio, len(source.images) // batch))
        ),
        baseline=source.test is not None,
    )


def most_steps(config: ExperimentConfig, source: Source) -> int:
    seen = config.training.batch * (config.training.ratio or 1)
    return int(min(MOST, max(2000, EPOCHS * len(source.images) / seen)))


def step_seconds(config: ExperimentConfig, source: Source) -> float:
    """How long a training step takes here, from the median of a few."""
    training = replace(config.training, steps=TRIED + 1, log_every=1, checkpoint_every=1)
    # Recording a graph takes longer than it saves in a few steps.
    eager = replace(config, training=replace(training, execution="eager"))
    tried = Assembly(eager, SemiDataset.from_source(source))
    clock = [record.seconds for record in tried.trainer.run(until=TRIED + 1) if record.metrics]
    return statistics.median(b - a for a, b in itertools.pairwise(clock))


def glimpse(path: Path) -> Source:
    """As much of a source as planning needs, from names and headers; nothing is decoded."""
    if not path.is_dir() and path.suffix.lower() != ".csv":
        return data.load(str(path))
    found = survey_pictures(path)
    paths = [file for file, _, _ in found.items()]
    looks = pictures.map_in_threads(lambda one: pictures.try_read(pictures.read_header, one), paths)
    seen = [look for look in looks if look is not None]
    median = statistics.median(side for side, _ in seen) if seen else PICTURE_SIZES[0]
    labels = Counter(label for _, label in found.labeled)
    if len(labels) < 2:
        return data.load(str(path))  # says best what is missing
    return stand_in(
        {name: labels[name] for name in sort_classes(labels)},
        unlabeled=len(found.unlabeled),
        test=len(found.test),
        side=max((side for side in PICTURE_SIZES if side <= median), default=PICTURE_SIZES[0]),
        channels=1 if all(grey for _, grey in seen) else 3,
    )


def stand_in(
    classes: Mapping[str, int], *, unlabeled: int, test: int, side: int, channels: int
) -> Source:
    """A source of the right shape without pictures, and without their memory."""

    def blank(count: int) -> TensorStore:
        one = torch.zeros(1, channels, side, side, dtype=torch.uint8)
        return TensorStore(one.expand(count, -1, -1, -1))

    known = torch.arange(len(classes)).repeat_interleave(torch.tensor(list(classes.values())))
    return Source(
        name="plan",
        images=blank(len(known) + unlabeled),
        labels=torch.cat([known, torch.full((unlabeled,), -1)]),
        test=blank(test) if test else None,
        classes=tuple(classes),
        appearance=appearance(channels, side),
    )


def resized(source: Source, side: int) -> Source:
    """A stand-in for the source at another size; only its speed is of interest."""
    counts = torch.bincount(source.labels[source.labels >= 0], minlength=source.num_classes)
    return stand_in(
        dict(zip(source.classes, counts.tolist(), strict=True)),
        unlabeled=int((source.labels < 0).sum()),
        test=0,
        side=side,
        channels=source.images.shape[0],
    )


def appearance(channels: int, side: int) -> Appearance:
    return Appearance(mean=(0.5,) * channels, std=(0.25,) * channels, padding=max(1, side // 8))
