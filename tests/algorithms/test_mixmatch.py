"""MixMatch: guesses are sharpened after averaging."""

import torch

from fullmatch.algorithms import MixMatch
from tests.algorithms.agreement import assert_agrees, confident_network
from tests.networks import random_batch, tiny_task
from tests.reference import mixing


def test_agrees_with_the_reference() -> None:
    assert_agrees(MixMatch(), mixing.MixMatch)


def test_guess_sharpens_the_mean_and_not_each_view() -> None:
    task = tiny_task()
    algorithm, student = MixMatch().build(task), confident_network(task.num_classes)
    views = random_batch(task, algorithm.views).unlabeled
    guess = algorithm.guess(student, views)
    each = [student(view).logits.softmax(dim=1) for view in views]
    power = ((each[0] + each[1]) / 2) ** 2
    torch.testing.assert_close(guess, (power / power.sum(dim=1, keepdim=True)).detach())
    assert not guess.requires_grad
