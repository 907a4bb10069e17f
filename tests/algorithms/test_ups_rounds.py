"""UPS's choice of labels against a loop over images and classes."""

import numpy as np
import torch

from fullmatch.algorithms.ups_rounds import (
    ChoiceLimits,
    balance_classes,
    choose_labels,
    positive_labels,
    unlikely_classes,
)
from tests.reference.arithmetic import softmax
from tests.reference.ups import unlikely


def sampled(images: int = 60, classes: int = 4) -> torch.Tensor:
    torch.manual_seed(0)
    noise = torch.rand(images, 1) * torch.randn(10, images, classes)
    return 2 * torch.randn(images, classes) + 0.3 * noise


def test_positive_and_negative_labels_agree_with_loops() -> None:
    logits = sampled()
    label, positive, deviation = positive_labels(logits)
    negative = unlikely_classes(logits)
    for i, samples in enumerate(logits.double().numpy().transpose(1, 0, 2)):
        probs = np.array([softmax(row) for row in samples])
        best = int(probs.mean(axis=0).argmax())
        spread = probs[:, best].std(ddof=1)
        assert int(label[i]) == best
        assert abs(float(deviation[i]) - spread) < 1e-6
        assert bool(positive[i]) is bool(probs[:, best].mean() >= 0.7 and spread < 0.05)
        expected = unlikely(samples, 0.05, 0.005, temperature=2.0)
        assert set(negative[i].nonzero()[:, 0].tolist()) == expected
    assert 0 < positive.sum() < len(positive)
    assert negative.any()


def test_best_class_is_never_negative() -> None:
    logits = torch.zeros(3, 1, 30)  # every class at 1/30
    assert not unlikely_classes(logits).any()


def test_balance_keeps_the_most_certain_of_each_class() -> None:
    label = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 2])
    positive = torch.tensor([1, 1, 1, 1, 1, 1, 1, 1, 0]).bool()
    deviation = torch.tensor([0.04, 0.01, 0.03, 0.02, 0.03, 0.01, 0.02, 0.01, 0.0])
    balanced = balance_classes(label, positive, deviation, 3, minimum=1)
    assert balanced.nonzero()[:, 0].tolist() == [1, 3, 4, 5, 6, 7]
    balanced = balance_classes(label, positive, deviation, 3, minimum=3)
    assert balanced.nonzero()[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert torch.equal(balance_classes(label, positive, deviation, 3), positive)


def test_a_class_without_labels_leaves_the_minimum() -> None:
    label, positive = torch.zeros(40, dtype=torch.int64), torch.ones(40, dtype=torch.bool)
    deviation = torch.arange(40).float()
    assert balance_classes(label, positive, deviation, 2).nonzero()[:, 0].tolist() == list(
        range(25)
    )


def test_only_images_without_a_label_keep_negatives() -> None:
    logits = sampled(200)
    free, balanced = (
        choose_labels(logits, balanced=False),
        choose_labels(logits, balanced=True, limits=ChoiceLimits(minimum=1)),
    )
    assert balanced.positive.sum() < free.positive.sum()
    for choice in (free, balanced):
        assert choice.negative.any()
        assert not choice.negative[choice.positive].any()
    assert balanced.negative[free.positive & ~balanced.positive].any()
    counts = torch.bincount(balanced.label[balanced.positive], minlength=4)
    assert (counts == counts[0]).all()


def test_the_label_is_never_ruled_out() -> None:
    """Of 30 classes, softening makes another class the best one, but the label stays."""
    samples = torch.zeros(10, 1, 30)
    samples[:, 0, 0] = torch.tensor([3.0, *[0.0] * 9])  # rarely chosen, but then surely
    samples[:, 0, 1] = 0.6
    assert samples.softmax(dim=2).mean(dim=0).argmax() == 0
    assert (samples / 2).softmax(dim=2).mean(dim=0).argmax() == 1
    free = ChoiceLimits(negative_spread=1.0)
    negative = choose_labels(samples, balanced=False, limits=free).negative[0]
    assert not negative[0]
    assert negative[1]
