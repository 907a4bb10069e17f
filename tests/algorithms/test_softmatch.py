"""SoftMatch: weights from the running confidence."""

import dataclasses
from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor

from fullmatch.algorithms import SoftMatch
from fullmatch.algorithms.alignment import MovingMean, align
from fullmatch.algorithms.pseudo_labeling import Passes
from fullmatch.algorithms.softmatch import GaussianWeight, SoftLabelWeights
from fullmatch.core import Output, Task
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


def labeled_step(spec: SoftMatch, task: Task, weak: Tensor, known: Tensor) -> SoftLabelWeights:
    """A labeler after one batch with these weak and labeled predictions."""
    labeler = spec.build(task).labeler
    assert isinstance(labeler, SoftLabelWeights)
    outputs = [Output(rows.log(), torch.zeros(len(rows), 16)) for rows in (known, weak)]
    batch = random_batch(task, SoftMatch.views, labeled=len(known), unlabeled=len(weak))
    batch = batch._replace(labels=known.argmax(dim=1))
    labeler(Passes(outputs[0], outputs[1], (outputs[1],), None), batch, torch.tensor(0.5))
    return labeler


def test_running_means_start_uniform_as_in_torchssl() -> None:
    weak, known = torch.tensor([[0.9, 0.1], [0.7, 0.3]]), torch.tensor([[0.1, 0.9]])
    labeler = labeled_step(SoftMatch(momentum=0.9), tiny_task(2), weak, known)
    torch.testing.assert_close(labeler.predicted.mean, torch.tensor([0.53, 0.47]))
    torch.testing.assert_close(labeler.wanted.mean, torch.tensor([0.46, 0.54]))


def test_uniform_alignment_takes_statistics_of_aligned_predictions_as_in_usb() -> None:
    weak, known = torch.tensor([[0.9, 0.1], [0.7, 0.3]]), torch.tensor([[0.1, 0.9]])
    spec = SoftMatch(momentum=0.0, alignment="uniform")
    labeler = labeled_step(spec, tiny_task(2), weak, known)
    aligned = align(weak, weak.mean(dim=0), torch.tensor([0.5, 0.5])).amax(dim=1)
    torch.testing.assert_close(labeler.weight.mean, aligned.mean())
    torch.testing.assert_close(labeler.weight.variance, aligned.var())
    assert labeler.weight.mean < weak.amax(dim=1).mean()


def test_labeled_images_of_a_repeated_class_count_once() -> None:
    """A batch holds both classes equally often, since the second one is repeated."""
    task = replace(tiny_task(2), class_prior=(0.9, 0.1), batch_prior=(0.5, 0.5))
    known = torch.tensor([[1.0, 1e-9], [1e-9, 1.0]])
    labeler = labeled_step(SoftMatch(momentum=0.0), task, known, known)
    torch.testing.assert_close(labeler.wanted.mean, torch.tensor([0.9, 0.1]))


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
