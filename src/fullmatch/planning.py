"""What training chooses by itself: picture size, network, batches and steps, from data and machine.

Candidates go from the best to the quickest; the first that gets enough steps into the time is
taken. Part of the time trains the final model, the rest finds out how good it is: see `overhead`.
"""

import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from fullmatch import data
from fullmatch.algorithms import algorithm as spec_of
from fullmatch.assembly import Assembly
from fullmatch.config import DataConfig, ExperimentConfig, ModelConfig, OptimizerConfig
from fullmatch.config import TrainingConfig as Training
from fullmatch.core import Appearance
from fullmatch.data import SemiDataset, Source, TensorStore, pictures
from fullmatch.data.dataset import class_order
from fullmatch.data.listing import SIDES
from fullmatch.data.survey import survey
from fullmatch.errors import UserError
from fullmatch.presets import with_recipe

MINUTES = 10.0
LEAST, MOST = 100, 20_000  # steps
EPOCHS = 300  # of the unlabeled pictures; more are not worth the time
TRIED = 3  # steps that are timed, after one that warms up
FOLDS = 5  # parts of the labels that are held out in turn to estimate accuracy
MANY = 200  # labels from which only one part is held out
VERY_FEW = 30  # labels below which every part is held out twice
SHORTER = 3  # the final model trains so many times longer than one for an estimate


@dataclass(frozen=True)
class Choice:
    """A network and the size of its pictures."""

    model: str
    side: int
    enough: int = 1500  # steps below which a quicker choice does better
    pretrained: bool = False


@dataclass(frozen=True)
class Plan:
    config: ExperimentConfig
    seconds: float  # that everything will take here, an estimate
    notes: tuple[str, ...]


def plan(
    source: Source,
    name: str,
    *,
    algorithm: str = "fullmatch",
    minutes: float | None = None,
    device: torch.device | None = None,
    measure: "Callable[[ExperimentConfig, Source], float] | None" = None,
) -> Plan:
    """A config for these pictures that is done here within the minutes."""
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    measure = measure or step_seconds
    if minutes is not None and not 0 < minutes < float("inf"):
        raise UserError(f"--minutes is {minutes:g}, expected a number above 0")
    time = 60 * (MINUTES if minutes is None else minutes)
    units = overhead(source)
    options, notes = choices(source, device, resizable=not name.endswith(".npz"))
    for choice in options:
        config = chosen(choice, source, name, algorithm, device)
        seconds = measure(config, resized(source, choice.side))
        steps = int(time / units / seconds)
        if steps >= choice.enough:
            break
    notes.append(f"network {config.model.name} on pictures of {choice.side}x{choice.side}")
    if steps < choice.enough:
        needed = int(choice.enough * seconds * units / 60) + 1
        notes.append(
            f"{steps} steps fit into {time / 60:g} min here, and {LEAST} are taken at least; "
            f"{choice.enough} would do better: give --minutes {needed}"
        )
    config = with_steps(config, max(LEAST, min(steps, most_steps(config, source))))
    return Plan(config, config.training.steps * seconds * units, tuple(notes))


def overhead(source: Source) -> float:
    """All that happens, in units of training the final model."""
    alone = 0.2  # the same network on the labels alone is much quicker
    labels = int((source.labels >= 0).sum())
    if source.test is not None:
        return 1.1 + alone
    parts = 1 if labels >= MANY else FOLDS * (2 if labels < VERY_FEW else 1)
    return 1.1 + parts * (1 + alone) / SHORTER


def choices(
    source: Source, device: torch.device, *, resizable: bool
) -> tuple[list[Choice], list[str]]:
    """Candidates from the best to the quickest, and what to say about them."""
    side, notes = source.images.shape[1], list[str]()
    found: list[Choice] = []
    if side >= 64:
        weights = weights_file("resnet18")
        if weights.is_file():
            found.append(Choice("resnet18", side, enough=300, pretrained=True))
        else:
            notes.append(
                f"no pretrained weights here (looked for {weights}): the network starts from "
                "nothing, and would do better with them"
            )
        found.append(Choice("wrn-37-2", min(side, 96) if resizable else side))
    small = min(side, 32) if resizable else side
    if device.type == "cuda":
        found.append(Choice("wrn-28-2", small))
    if small > 16:
        found.append(Choice("wrn-16-2", small))
    return [*found, Choice("wrn-10-1", small)], notes


def chosen(
    choice: Choice, source: Source, name: str, algorithm: str, device: torch.device
) -> ExperimentConfig:
    """All but the number of steps."""
    spec, cpu = spec_of(algorithm), device.type == "cpu"
    labels = int((source.labels >= 0).sum())
    batch = min(labels, 16 if cpu else 64)
    # A processor does better with more steps than with more pictures a step.
    ratio = min(spec.ratio, 3) if cpu else spec.ratio
    optimizer = with_recipe(OptimizerConfig(), spec)
    if choice.pretrained:
        optimizer = replace(optimizer, rate=optimizer.rate / 3)
    return ExperimentConfig(
        data=DataConfig(
            name=name, size=None if choice.side == source.images.shape[1] else choice.side
        ),
        algorithm=spec,
        model=ModelConfig(name=choice.model, pretrained=choice.pretrained, norm_momentum=0.01),
        optimizer=optimizer,
        training=Training(
            steps=LEAST, batch=batch, ratio=max(1, min(ratio, len(source.images) // batch))
        ),
        baseline=source.test is not None,
    )


def with_steps(config: ExperimentConfig, steps: int) -> ExperimentConfig:
    """The config with so many steps, and with logs, checkpoints and averages that suit them."""
    log_every = max(1, steps // 100)
    training = replace(
        config.training,
        steps=steps,
        log_every=log_every,
        # A multiple, so that a loss that is no number is seen before its state is saved.
        checkpoint_every=10 * log_every,
        evaluate_every=10 * log_every,
        ema=0.99 if steps < 5000 else 0.999,
    )
    momentum = 0.01 if steps < 5000 else 0.001
    return replace(config, training=training, model=replace(config.model, norm_momentum=momentum))


def most_steps(config: ExperimentConfig, source: Source) -> int:
    seen = config.training.batch * (config.training.ratio or 1)
    return int(min(MOST, max(2000, EPOCHS * len(source.images) / seen)))


def step_seconds(config: ExperimentConfig, source: Source) -> float:
    """How long a training step takes here, from the median of a few."""
    training = replace(config.training, steps=TRIED + 1, log_every=1, checkpoint_every=1)
    # Recording a graph takes longer than it saves in a few steps.
    eager = replace(config, training=replace(training, execution="eager"))
    tried = Assembly(eager, SemiDataset.of(source))
    clock = [record.seconds for record in tried.trainer.run(until=TRIED + 1) if record.metrics]
    return statistics.median(b - a for a, b in itertools.pairwise(clock))


def weights_file(model: str) -> Path:
    """Where torchvision keeps the pretrained weights of a model."""
    from torchvision.models import get_model_weights

    url = str(get_model_weights(model).DEFAULT.url)
    return Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]


def glimpse(path: Path) -> Source:
    """As much of a source as planning needs, from names and headers; nothing is decoded."""
    if not path.is_dir() and path.suffix.lower() != ".csv":
        return data.load(str(path))
    found = survey(path)
    paths = [file for file, _, _ in found.items()]
    looks = pictures.in_threads(lambda one: pictures.attempt(pictures.glance, one), paths)
    seen = [look for look in looks if look is not None]
    median = statistics.median(side for side, _ in seen) if seen else SIDES[0]
    labels = Counter(label for _, label in found.labeled)
    if len(labels) < 2:
        return data.load(str(path))  # says best what is missing
    return stand_in(
        {name: labels[name] for name in class_order(labels)},
        unlabeled=len(found.unlabeled),
        test=len(found.test),
        side=max((side for side in SIDES if side <= median), default=SIDES[0]),
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
