"""Scores against counting by hand and against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, top_k_accuracy_score

from fullmatch.data import TensorStore
from fullmatch.evaluation.intervals import wilson_interval
from fullmatch.evaluation.scores import (
    compute_scores,
    finalize_scores,
    predict_probabilities,
    predict_together,
    summarize_scores,
)


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
    scores = compute_scores(probs, labels)
    predicted = probs.argmax(dim=1)
    assert scores.top1 == (predicted == labels).double().mean().item()
    assert np.array_equal(scores.confusion, confusion_matrix(labels, predicted))
    assert scores.ece == pytest.approx(slow_ece(probs.double().numpy(), labels.numpy()), abs=1e-9)
    for label in range(classes):
        members = labels == label
        assert scores.per_class[label] == pytest.approx(
            (predicted[members] == label).double().mean().item()
        )
    assert scores.balanced_accuracy == pytest.approx(balanced_accuracy_score(labels, predicted))
    if classes <= 5:
        assert scores.top5 is None
        assert "top5" not in summarize_scores(scores)
    else:
        expected = top_k_accuracy_score(labels, probs.double(), k=5, labels=range(classes))
        assert scores.top5 == pytest.approx(expected)
        balanced = {"balanced_accuracy": scores.balanced_accuracy} if scores.uneven else {}
        expected_line = {"top1": scores.top1, "top5": scores.top5, "ece": scores.ece}
        assert summarize_scores(scores) == expected_line | balanced


def test_class_without_images_and_sure_predictions() -> None:
    probs = torch.eye(3)[[0, 0, 1]]
    scores = compute_scores(probs, torch.tensor([0, 0, 0]))
    assert scores.per_class == (2 / 3, None, None)
    assert scores.balanced_accuracy == 2 / 3
    assert scores.top1 == pytest.approx(2 / 3)
    assert scores.ece == pytest.approx(1 / 3)


def test_probabilities_come_in_order_and_without_gradient() -> None:
    images = torch.arange(7, dtype=torch.uint8).reshape(7, 1, 1, 1)
    weight = torch.ones(1, requires_grad=True)
    probabilities = predict_probabilities(
        lambda batch: batch.flatten(1) * weight,
        TensorStore(images),
        batch=3,
        device=torch.device("cpu"),
    )
    assert probabilities.flatten().tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert not probabilities.requires_grad


def test_final_scores_say_how_each_number_was_chosen() -> None:
    scores = compute_scores(torch.eye(2)[[0, 0, 1, 1]], torch.tensor([0, 1, 0, 1]))
    final = finalize_scores(scores, [step / 100 for step in range(30)])
    assert final.top1 == 0.5
    assert final.interval == wilson_interval(0.5, 4)
    assert final.median_last_20 == pytest.approx(0.195)  # of 0.10 to 0.29
    assert final.best_chosen_on_test == 0.29
    assert final.confusion == scores.confusion
    assert final.ece == scores.ece
    own = finalize_scores(scores)  # the test pictures of a user are looked at only once
    assert own.best_chosen_on_test is None
    assert own.median_last_20 is None


def test_balanced_accuracy_counts_every_class_equally() -> None:
    labels = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1])
    scores = compute_scores(torch.eye(2)[[0, 0, 0, 0, 0, 0, 0, 1]], labels)
    assert scores.top1 == 7 / 8
    assert scores.per_class == (1.0, 0.5)
    assert scores.balanced_accuracy == 0.75
    assert scores.uneven
    assert summarize_scores(scores)["balanced_accuracy"] == 0.75
    assert finalize_scores(scores).balanced_accuracy == 0.75
    even = compute_scores(torch.eye(2)[[0, 1]], torch.tensor([0, 1]))
    assert not even.uneven
    assert "balanced_accuracy" not in summarize_scores(even)


def test_several_models_read_every_image_once() -> None:
    class CountedStore(TensorStore):
        reads = 0

        def read(self, index: torch.Tensor) -> torch.Tensor:
            self.reads += len(index)
            return super().read(index)

    store = CountedStore(torch.arange(7 * 2, dtype=torch.uint8).reshape(7, 1, 1, 2))
    models = {
        "double": lambda images: 2.0 * images.flatten(1),
        "half": lambda images: 0.5 * images.flatten(1),
    }
    device = torch.device("cpu")
    together = predict_together(models, store, batch=3, device=device)
    assert store.reads == 7
    for name, model in models.items():
        alone = predict_probabilities(model, store, batch=3, device=device)
        assert together[name].equal(alone)
