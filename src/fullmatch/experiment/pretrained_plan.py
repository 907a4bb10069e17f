"""Plans that start from pretrained weights: a head on the features of a frozen body.

The body looks at every picture at several sizes, as many as the time allows.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import torch

from fullmatch.config import ExperimentConfig, OptimizerConfig
from fullmatch.data import Source
from fullmatch.experiment.feature_pass import FeaturePass
from fullmatch.experiment.frozen_model import SMALL_SIDE, choose_sizes, load_frozen_model
from fullmatch.experiment.plan_types import PlanOptions, TrainingPlan
from fullmatch.experiment.presets import own_pictures, with_steps
from fullmatch.models.pretrained import WeightsFile
from fullmatch.plugins import is_reference

FROZEN_SIDE = 224  # to which photos are brought for a frozen body
HEAD_STEPS, HEAD_RATE, HEAD_THRESHOLD = 200, 0.1, 0.7
PASS_SHARE = 0.5  # of the time that the feature pass may take; heads and measuring need the rest
HEAD_SECONDS, HEAD_PICTURES = 20.0, 60.0  # heads take so long, and a second per so many pictures
MOST_HEAD_PICTURES = 10_000
TIMED_BATCHES = 3  # after one warm-up batch
TUNED_BATCH, TUNED_RATIO = 32, 3

# Seconds per pixel that go through a frozen body, for the weights of a network.
PassTimer = Callable[[WeightsFile, Source, torch.device], float]


def plan_pretrained(
    source: Source,
    name: str,
    options: PlanOptions,
    weights: WeightsFile,
    device: torch.device,
    measure: PassTimer | None = None,
) -> TrainingPlan:
    """A head on the features of a pretrained network: minutes on a CPU, for thousands of photos."""
    config = frozen_config(source, name, options.algorithm, weights.model)
    side = min(source.images.shape[1:])
    if not name.endswith(".npz") and not is_reference(name):  # arrays keep their own size
        config = replace(config, data=replace(config.data, size=frozen_size(side)))
    pictures = len(source.images) + (len(source.test) if source.test else 0)
    per_pixel = (measure or measure_pass)(weights, source, device)
    heads = HEAD_SECONDS + min(pictures, MOST_HEAD_PICTURES) / HEAD_PICTURES
    sizes = fit_sizes(choose_sizes(side), PASS_SHARE * options.seconds / (pictures * per_pixel))
    config = replace(config, model=replace(config.model, sizes=sizes))
    seconds = pictures * per_pixel * pixels(sizes) + heads
    notes = [f"a head on the features of {weights.model}, which knows photos already"]
    if seconds > options.seconds:
        notes.append(
            f"about {seconds / 60:.2g} min are needed for {pictures:,} pictures, more than the "
            f"{options.seconds / 60:g} min asked for; fewer unlabeled pictures take less"
        )
    return TrainingPlan(config, seconds, tuple(notes), compare_strategies=True)


def frozen_size(side: int) -> int:
    """The side that photos are resized to for a frozen body."""
    return side if side <= SMALL_SIDE else FROZEN_SIDE


def frozen_config(source: Source, name: str, algorithm: str, model: str) -> ExperimentConfig:
    """Settings of a head on the features of a frozen body, at any picture size."""
    labels, pictures = int((source.labels >= 0).sum()), len(source.images)
    batch = min(labels, 40)
    config = with_steps(own_pictures(name, algorithm), HEAD_STEPS)
    config = replace(
        config,
        model=replace(config.model, name=model, body="frozen", head="propagation", crops=0),
        optimizer=replace(config.optimizer, rate=HEAD_RATE, weight_decay=0.0),
        training=replace(
            config.training,
            batch=batch,
            ratio=max(1, min(5, pictures // batch)),
            execution="eager",  # compiling a head's steps would take longer than they do
        ),
        baseline=source.test is not None,
    )
    if any(field.name == "threshold" for field in fields(config.algorithm)):
        # A linear head is never very confident.
        config = replace(config, algorithm=replace(config.algorithm, threshold=HEAD_THRESHOLD))
    return config


def tuned_config(config: ExperimentConfig, steps: int, device: torch.device) -> ExperimentConfig:
    """The settings of a head, with all of the network trained from there.

    Layers close to the input change least (layer decay), and all of them slowly: a few labels must
    not overwrite what the weights know.
    """
    batch = min(config.training.batch, TUNED_BATCH)
    ratio = min(config.training.ratio or TUNED_RATIO, TUNED_RATIO)
    config = with_steps(config, steps)
    return replace(
        config,
        model=replace(config.model, body="tuned"),
        optimizer=OptimizerConfig(
            name="adamw",
            rate=1e-3,
            weight_decay=0.05,
            layer_decay=0.5,
            warmup=steps // 20,
            cosine=0.5,
            clip=1.0,
        ),
        # Compiling would take longer than it saves.
        training=replace(
            config.training,
            batch=batch,
            ratio=ratio,
            execution="recorded" if device.type == "cuda" else "auto",
        ),
    )


def fit_sizes(sizes: Sequence[int], most_pixels: float) -> tuple[int, ...]:
    """The best choice of sizes that fits, or else the fastest one."""
    choices = list_choices(tuple(sizes))
    return next((each for each in choices if pixels(each) <= most_pixels), choices[-1])


def list_choices(sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Choices of sizes from the best to the fastest: without the largest ones.

    Of the two sizes of tiny pictures, the larger one alone is as good as both; the smaller one
    alone costs 4 points of accuracy (32 pixels, 4 and 25 labels per class).
    """
    if len(sizes) == 2:
        return [sizes, sizes[1:], sizes[:1]]
    return [sizes[:count] for count in range(len(sizes), 0, -1)]


def pixels(sizes: Sequence[int]) -> int:
    """Of one picture at all of these sizes."""
    return sum(size * size for size in sizes)


def measure_pass(weights: WeightsFile, source: Source, device: torch.device) -> float:
    """How long a pixel takes through the body here, from a few batches of blank pictures."""
    side = min(source.images.shape[1:])
    model = load_frozen_model(weights.model, source.appearance, side)
    work = FeaturePass(model, None, device)
    blank = torch.zeros(work.batch, source.images.shape[0], side, side, dtype=torch.uint8)
    seconds: list[float] = []
    for _ in range(1 + TIMED_BATCHES):
        started = time.perf_counter()
        work.describe_batch(blank, 0)
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:]) / (work.batch * pixels(model.body.sizes))
