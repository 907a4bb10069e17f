"""SoftMatch: weights from the running confidence."""

import dataclasses
from typing import Literal

import pytest
import torch

from fullmatch.algorithms import SoftMatch
from fullmatch.algorithms.alignment import MovingMean, align
from fullmatch.algorithms.pseudo_labeling import Passes
from fullmatch.algorithms.softmatch import GaussianWeight
from fullmatch.core import Output
from tests.algorithms.agreement import assert_agrees
from tests.networks import random_batch, tiny_task
from tests.reference import thresholds


@pytest.mark.parametrize("alignment", ["labeled", "uniform"])
def test_agrees_with_the_reference(alignment: Literal["labeled", "uniform"]) -> None:
    assert_agrees(SoftMatch(momentum=0.6, alignment=alignment), thresholds.SoftMatch)


def test_weight_is_a_truncated_gaussian() -> None:
    weight = GaussianWeight(SoftMatch(), 4)
    weight.mean.fill_(0.8)
    weight.variance.fill_(0.04)
    actual = weight(torch.tensor([0.9, 0.8, 0.6]))
    torch.testing.assert_close(actual, torch.tensor([1.0, 1.0, 0.1353352832]))


def test_label_is_from_the_prediction_before_alignment() -> None:
    task = tiny_task(2)
    labeler = SoftMatch(alignment="uniform").build(task).labeler
    probs = torch.tensor([[0.55, 0.45], [0.95, 0.05], [0.95, 0.05]])
    output = Output(probs.log(), torch.zeros(3, 16))
    batch = random_batch(task, SoftMatch.views, unlabeled=3)
    pseudo = labeler(Passes(output, output, (output,), None), batch, torch.tensor(0.5))
    shifted = align(probs, probs.mean(dim=0), torch.tensor([0.5, 0.5]))
    assert shifted[0].argmax() == 1
    assert pseudo.label.tolist() == [0, 0, 0]
    torch.testing.assert_close(pseudo.probs, probs)


def test_one_image_has_no_variance_and_no_nan() -> None:
    weight = GaussianWeight(SoftMatch(momentum=0.0), 4)
    weight.remember(torch.tensor([0.9]))
    assert weight(torch.tensor([0.9, 0.1])).tolist() == [1.0, 0.0]


def test_first_batch_sets_a_moving_mean() -> None:
    average = MovingMean(2, momentum=0.9)
    average(torch.tensor([[0.8, 0.2], [0.6, 0.4]]))
    torch.testing.assert_close(average.mean, torch.tensor([0.7, 0.3]))
    average(torch.tensor([[0.2, 0.8]]))
    torch.testing.assert_close(average.mean, torch.tensor([0.65, 0.35]))


def test_threshold_is_not_a_setting() -> None:
    assert "threshold" not in {field.name for field in dataclasses.fields(SoftMatch)}
    with pytest.raises(TypeError):
        SoftMatch(threshold=0.9)
