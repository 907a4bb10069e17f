"""Pseudo-Label: labels come from the pass that learns them."""

import torch

from fullmatch.algorithms import PseudoLabel
from tests.algorithms.agreement import assert_agrees
from tests.networks import TinyNetwork, random_batch, tiny_task
from tests.reference import consistency


def test_agrees_with_the_reference() -> None:
    assert_agrees(PseudoLabel(threshold=0.7), consistency.PseudoLabel)


def test_learns_on_the_pass_that_gives_the_label() -> None:
    task = tiny_task()
    algorithm = PseudoLabel(threshold=0.0).build(task)
    batch = random_batch(task, algorithm.views)
    weak = batch.unlabeled[0].requires_grad_()
    student = TinyNetwork(task.num_classes)
    objective = algorithm(student, student, batch, torch.tensor(1.0))
    objective.loss.backward()
    assert weak.grad is not None
    assert weak.grad.any()
    assert objective.metrics["selected"] == 1
