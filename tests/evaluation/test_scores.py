"""Scores against counting by hand and against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix, top_k_accuracy_score

from fullmatch.data import TensorStore
from fullmatch.evaluation.scores import probabilities, scores


def random_predictions(classes: int, count: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(classes)
    probs = (3 * torch.randn(count, classes, generator=generator)).softmax(dim=1)
    return probs, torch.randint(classes, (count,), generator=generator)


def slow_ece(probs: np.ndarray, labels: np.ndarray, bins: int = 15) -> float:
    confidence, right = probs.max(axis=1), probs.argmax(axis=1) == labels
    total = 0.0
    for i in range(bins):
        inside = (confidence >= i / bins) & (confidence < (i + 1) / bins)
        if i == bins - 1:
            inside |= confidence == 1.0
        if inside.any():
            total += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    return total


@pytest.mark.parametrize("classes", [2, 5, 6, 20])
def test_against_others(classes: int) -> None:
    probs, labels = random_predictions(classes)
    found = scores(probs, labels)
    predicted = probs.argmax(dim=1)
    assert found.top1 == (predicted == labels).double().mean().item()
    assert np.array_equal(found.confusion, confusion_matrix(labels, predicted))
    assert found.ece == pytest.approx(slow_ece(probs.double().numpy(), labels.numpy()), abs=1e-9)
    for label in range(classes):
        members = labels == label
        assert found.per_class[label] == pytest.approx(
            (predicted[members] == label).double().mean().item()
        )
    if classes <= 5:
        assert found.top5 is None and "top5" not in found.summary()
    else:
        expected = top_k_accuracy_score(labels, probs.double(), k=5, labels=range(classes))
        assert found.top5 == pytest.approx(expected)


def test_class_without_images_and_sure_predictions() -> None:
    probs = torch.eye(3)[[0, 0, 1]]
    found = scores(probs, torch.tensor([0, 0, 0]))
    assert found.per_class == (pytest.approx(2 / 3), None, None)
    assert found.top1 == pytest.approx(2 / 3) and found.ece == pytest.approx(1 / 3)


def test_probabilities_come_in_order_and_without_gradient() -> None:
    images = torch.arange(7, dtype=torch.uint8).reshape(7, 1, 1, 1)
    weight = torch.ones(1, requires_grad=True)
    found = probabilities(
        lambda batch: batch.flatten(1) * weight,
        TensorStore(images),
        batch=3,
        device=torch.device("cpu"),
    )
    assert found.flatten().tolist() == [0, 1, 2, 3, 4, 5, 6] and not found.requires_grad
