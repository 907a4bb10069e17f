"""Settings by data set: the paper's grid, computed, and defaults for everything else."""

from dataclasses import replace

from fullmatch.algorithms import Supervised
from fullmatch.algorithms import algorithm as spec_of
from fullmatch.config import (
    DataConfig,
    ExperimentConfig,
    ModelConfig,
    OptimizerConfig,
    TrainingConfig,
)
from fullmatch.core import SpecLike, as_spec

BUDGETS = {"paper": 2**20, "fast": 2**16}
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
    dataset: str, labels: int | None = None, algorithm: str = "fullmatch", *, budget: str = "paper"
) -> ExperimentConfig:
    """The published setting of a data set: network, weight decay, batch, schedule, steps."""
    spec = spec_of(algorithm)
    return ExperimentConfig(
        data=DataConfig(
            name=dataset,
            labels=labels or LABELS[dataset][0],
            flip=True if dataset in FLIPPED else None,
        ),
        algorithm=spec,
        model=ModelConfig(name=MODELS.get(dataset, "wrn-28-2")),
        optimizer=with_recipe(OptimizerConfig(weight_decay=DECAY.get(dataset, 5e-4)), spec),
        training=TrainingConfig(
            steps=BUDGETS[budget], batch=32 if dataset == "imagenet" else 64, ratio=spec.ratio
        ),
    )


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


def default(data: str, labels: int | None, algorithm: str) -> ExperimentConfig:
    """What `fullmatch train` starts from."""
    if data == "digits":
        return digits(labels, algorithm)
    if data in LABELS:
        return paper(data, labels, algorithm)
    return own_pictures(data, algorithm)


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
    config = replace(config, algorithm=Supervised(), baseline=False)
    if config.model.body != "frozen":
        return config
    return replace(
        with_steps(config, 1),
        model=replace(config.model, head="logistic"),
        optimizer=replace(config.optimizer, rate=0.0),  # it is fitted, and stays as it is
    )


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
