"""Settings by data set: the paper's grid, computed, and defaults for everything else."""

from dataclasses import replace

from fullmatch import distributed
from fullmatch.algorithms import Supervised, SupportsFull
from fullmatch.algorithms import algorithm as spec_of
from fullmatch.config import (
    DataConfig,
    ExperimentConfig,
    ModelConfig,
    OptimizerConfig,
    TrainingConfig,
)
from fullmatch.core import SpecLike, as_spec
from fullmatch.data import DATASETS, find_benchmark
from fullmatch.experiment.published_settings import with_published

BUDGETS = ("paper", "fast")
PAPER_STEPS = 2**20
FAST_STEPS = 2**18  # planned for half an hour on one H200
FAST_DIGITS_STEPS = 3200  # in the time of 1,600 usual ones
LABELS = {  # the label counts of the paper's tables, the first being the default
    "cifar10": (40, 250, 4000),
    "cifar100": (400, 2500, 10000),
    "svhn": (40, 1000),
    "svhn-noextra": (40, 1000),
    "stl10": (1000,),
    "imagenet": (100_000,),
    "fashion-mnist": (40, 250),
    "digits": (40,),
}
MODELS = {"cifar100": "wrn-28-8", "stl10": "wrn-37-2", "imagenet": "resnet50"}
# TorchSSL flips every data set, house numbers too; the paper's settings follow it, though flipping
# does not suit these pictures.
FLIPPED = ("svhn", "svhn-noextra")
DECAY = {"cifar100": 1e-3, "imagenet": 3e-4}


def paper(
    dataset: str, labels: int | None = None, algorithm: str = "fullmatch"
) -> ExperimentConfig:
    """The published settings: network, weight decay, batch, schedule, and those of the method."""
    spec, labels = spec_of(algorithm), labels or LABELS.get(dataset, (None,))[0]
    batch = 32 if dataset == "imagenet" else 64
    config = ExperimentConfig(
        data=DataConfig(name=dataset, labels=labels, flip=True if dataset in FLIPPED else None),
        algorithm=spec,
        model=ModelConfig(name=MODELS.get(dataset, "wrn-28-2")),
        optimizer=with_recipe(OptimizerConfig(weight_decay=DECAY.get(dataset, 5e-4)), spec),
        training=TrainingConfig(
            steps=PAPER_STEPS,
            batch=batch,
            ratio=spec.ratio,
            repeat_labels=labels is not None and labels < batch,
        ),
    )
    return with_published(config)


def digits(labels: int | None = None, algorithm: str = "fullmatch") -> ExperimentConfig:
    """The embedded data set: 8x8 pictures, a small network, and a run of under a minute."""
    spec = spec_of(algorithm)
    return ExperimentConfig(
        data=DataConfig(name="digits", labels=labels or 40),
        algorithm=spec,
        model=ModelConfig(name="wrn-10-1", norm_momentum=0.01),
        optimizer=with_recipe(OptimizerConfig(), spec),
        training=TrainingConfig(
            steps=1600,
            batch=40,
            ratio=min(spec.ratio, 3),  # 1,297 images: more per step would mostly cost time
            ema=0.99,
            evaluate_every=40,
            log_every=20,
            checkpoint_every=200,
        ),
    )


def default(
    data: str, labels: int | None, algorithm: str, budget: str = "paper"
) -> ExperimentConfig:
    """What `fullmatch train` starts from."""
    if is_benchmark(data):
        config = digits(labels, algorithm) if data == "digits" else paper(data, labels, algorithm)
        return fast(config) if budget == "fast" else config
    return own_pictures(data, algorithm)


def is_benchmark(data: str) -> bool:
    """Whether the paper's settings are for it: its data sets, and those by `module:function`."""
    return data in LABELS or (data not in DATASETS and find_benchmark(data) is not None)


def fast(config: ExperimentConfig) -> ExperimentConfig:
    """The settings of a benchmark for a fraction of the time: cheaper steps, and fewer of them.

    Methods without pseudo-labels keep their own targets.
    """
    short = config.data.name == "digits"
    has_pseudo_labels = isinstance(config.algorithm, SupportsFull)
    return replace(
        config,
        # Statistics and averages that follow quickly, since they label from the first step on.
        model=replace(config.model, norm_momentum=0.05 if short else 0.01),
        optimizer=replace(config.optimizer, cosine=0.5),
        training=replace(
            config.training,
            steps=FAST_DIGITS_STEPS if short else FAST_STEPS,
            pseudo_labels="teacher" if has_pseudo_labels else "student",
            curriculum=0.7,
            ema_schedule="warmup",
        ),
    )


def own_pictures(path: str, algorithm: str) -> ExperimentConfig:
    """A user's own pictures: `planning` adds what follows from the pictures and the machine.

    A run from a config file starts here: a plan would fill in what the file leaves out, such as a
    picture size, and the run would not be the one that the file describes.
    """
    spec = spec_of(algorithm)
    config = ExperimentConfig(
        data=DataConfig(name=path),
        algorithm=spec,
        model=ModelConfig(name="wrn-16-2"),
        optimizer=with_recipe(OptimizerConfig(), spec),
        training=TrainingConfig(batch=32, ratio=spec.ratio),
    )
    return with_steps(config, 2000)


def labels_only(config: ExperimentConfig) -> ExperimentConfig:
    """The same network on the labels only; of a frozen body, logistic regression."""
    # Without what needs unlabeled images.
    training = replace(
        config.training, pseudo_labels="student", curriculum=None, self_supervised=0.0
    )
    config = replace(config, algorithm=Supervised(), baseline=False, training=training)
    if config.model.body == "trained":
        return config
    processes = distributed.world_size()  # each needs an image
    fitted = replace(
        config,
        model=replace(config.model, body="frozen", head="logistic"),
        optimizer=OptimizerConfig(rate=0.0),  # it stays as it is, whatever the batch
        training=replace(config.training, batch=processes, ratio=1, execution="eager"),
    )
    return with_steps(fitted, 1)


def with_steps(config: ExperimentConfig, steps: int) -> ExperimentConfig:
    """The config with this number of steps, and logging, checkpoints and averages to match."""
    log_every = max(1, steps // 100)
    # Average over 5 % of the training: a longer window would still include its start.
    window = min(1000, max(10, steps // 20))
    training = replace(
        config.training,
        steps=steps,
        log_every=log_every,
        # A multiple, so that a NaN loss is noticed before its state is saved.
        checkpoint_every=10 * log_every,
        evaluate_every=10 * log_every,
        ema=1 - 1 / window,
    )
    model = replace(config.model, norm_momentum=1 / window)
    return replace(config, training=training, model=model)


def with_recipe(optimizer: OptimizerConfig, spec: SpecLike) -> OptimizerConfig:
    """The optimizer settings that a method was published with, over the common ones."""
    recipe: dict[str, float] = dict(as_spec(spec).recipe)
    return replace(optimizer, **recipe)  # type: ignore[arg-type]
