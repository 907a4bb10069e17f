"""Scores of images of unknown classes, against counting pairs."""

import pytest
import torch

from fullmatch.evaluation.open_set import (
    OpenSetPredictions,
    by_confidence,
    by_open_set_head,
    compute_open_set_scores,
)


def test_auroc_counts_pairs() -> None:
    generator = torch.Generator().manual_seed(0)
    known = (torch.rand(30, generator=generator) + 0.2).round(decimals=1)  # with ties
    unknown = torch.rand(20, generator=generator).round(decimals=1)
    wins = (known[:, None] > unknown).double() + 0.5 * (known[:, None] == unknown)
    scores = compute_open_set_scores(
        OpenSetPredictions(known), torch.zeros(30).long(), OpenSetPredictions(unknown), 2
    )
    assert scores.auroc == pytest.approx(wins.mean().item())
    assert scores.images == 20
    assert scores.balanced_accuracy is None
    assert scores.unknown_accuracy is None


def test_the_largest_probability_is_the_score_of_other_methods() -> None:
    predictions = by_confidence(torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.9, 0.0]]))
    torch.testing.assert_close(predictions.known.float(), torch.tensor([0.5, 0.9]))
    assert predictions.label is None


def test_open_set_accuracy_weighs_every_class_and_unknown_equally() -> None:
    probs = torch.eye(3).float()  # class 0, class 1, unknown
    known = by_open_set_head(probs[[0, 0, 0, 1, 2]])
    unknown = by_open_set_head(probs[[2, 0, 0, 0]])
    assert known.known.tolist() == [1, 1, 1, 1, 0]
    scores = compute_open_set_scores(known, torch.tensor([0, 0, 0, 0, 1]), unknown, 2)
    assert scores.unknown_accuracy == pytest.approx(1 / 4)
    assert scores.balanced_accuracy == pytest.approx((3 / 4 + 0 + 1 / 4) / 3)


def test_a_class_without_test_images_is_left_out_of_the_mean() -> None:
    probs = torch.eye(4).float()
    known, unknown = by_open_set_head(probs[[0, 2]]), by_open_set_head(probs[[3]])
    scores = compute_open_set_scores(known, torch.tensor([0, 2]), unknown, 3)
    assert scores.balanced_accuracy == pytest.approx(1.0)
    assert scores.auroc == 1.0
