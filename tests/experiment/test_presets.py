"""The published settings, number by number."""

from dataclasses import replace

import pytest

from fullmatch.algorithms import names
from fullmatch.data import DATASETS
from fullmatch.experiment import presets


@pytest.mark.parametrize(
    ("data", "labels", "model", "decay", "batch"),
    [
        ("cifar10", 40, "wrn-28-2", 5e-4, 64),
        ("cifar100", 400, "wrn-28-8", 1e-3, 64),
        ("svhn", 40, "wrn-28-2", 5e-4, 64),
        ("stl10", 1000, "wrn-37-2", 5e-4, 64),
        ("imagenet", 100_000, "resnet50", 3e-4, 32),
    ],
)
def test_published(data: str, labels: int, model: str, decay: float, batch: int) -> None:
    config = presets.paper(data)
    assert config.data.labels == labels
    assert config.model.name == model
    assert (config.optimizer.rate, config.optimizer.momentum) == (0.03, 0.9)
    assert config.optimizer.nesterov
    assert config.optimizer.weight_decay == decay
    assert config.optimizer.cosine == 7 / 16
    assert config.model.norm_momentum == 0.001
    training = config.training
    assert (training.steps, training.batch, training.ratio) == (2**20, batch, 7)
    assert training.ema == 0.999
    assert training.evaluate_every == 1024


@pytest.mark.parametrize(
    ("data", "labels", "repeats"),
    [("cifar10", 40, True), ("svhn", 40, True), ("cifar10", 250, False), ("digits", 40, False)],
)
def test_labeled_batches_are_full_as_in_torchssl(data: str, labels: int, repeats: bool) -> None:
    """64 of 40 labels; where there are enough, older results keep their settings."""
    assert presets.default(data, labels, "fullmatch").training.repeat_labels is repeats
    assert presets.default("some/folder", None, "fullmatch").training.repeat_labels is False


def test_budgets_and_labels() -> None:
    assert presets.paper("cifar10", 250).data.labels == 250
    fast = presets.default("cifar10", 250, "fullflex", "fast")
    assert (fast.training.steps, fast.training.curriculum) == (2**18, 0.7)
    assert fast.training.pseudo_labels == "teacher"
    assert presets.default("cifar10", 250, "mixmatch", "fast").training.pseudo_labels == "student"
    assert presets.default("cifar10", 250, "fullflex") == presets.paper("cifar10", 250, "fullflex")


def test_svhn_is_mirrored_as_in_torchssl() -> None:
    flips = {name: presets.default(name, None, "fullmatch").data.flip for name in DATASETS}
    assert {name for name, flip in flips.items() if flip} == {"svhn", "svhn-noextra"}
    assert flips["digits"] is None  # as their catalog entry says
    assert flips["cifar10"] is None


def test_every_data_set_has_label_counts() -> None:
    assert set(presets.LABELS) == set(DATASETS)


@pytest.mark.parametrize("name", names())
def test_every_algorithm_has_a_preset(name: str) -> None:
    config = presets.default("cifar10", 40, name)
    assert config.training.ratio == config.algorithm.ratio


def test_recipes_of_methods() -> None:
    optimizer = presets.paper("cifar10", algorithm="npmatch").optimizer
    assert (optimizer.clip, optimizer.cosine) == (3.0, 63 / 128)


def test_own_pictures_keep_all_labels() -> None:
    config = presets.default("some/folder", None, "fullmatch")
    assert config.data.name == "some/folder"
    assert config.data.labels is None
    assert (config.training.steps, config.training.ema, config.model.norm_momentum) == (
        2000,
        0.99,
        0.01,
    )


def test_the_baseline_uses_no_unlabeled_images() -> None:
    training = replace(
        presets.digits().training, pseudo_labels="teacher", curriculum=0.7, self_supervised=0.2
    )
    baseline = presets.labels_only(replace(presets.digits(), training=training))
    assert baseline.training == presets.digits().training
