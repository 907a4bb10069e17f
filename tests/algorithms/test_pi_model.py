"""Pi-model: two weak views, only the first has gradient."""

import copy

import torch

from fullmatch.algorithms import PiModel
from tests.algorithms.agreement import assert_agrees
from tests.networks import TinyNetwork, random_batch, tiny_task
from tests.reference import consistency


def test_agrees_with_the_reference() -> None:
    assert_agrees(PiModel(), consistency.PiModel)


def test_only_the_first_view_learns() -> None:
    task, algorithm = tiny_task(), PiModel().build(tiny_task())
    batch = random_batch(task, algorithm.views)
    first, second = (view.requires_grad_() for view in batch.unlabeled)
    student = TinyNetwork(task.num_classes)
    algorithm(student, student, batch, torch.tensor(1.0)).loss.backward()
    assert first.grad is not None
    assert first.grad.any()
    assert second.grad is None


def test_unlabeled_passes_do_not_change_running_statistics() -> None:
    task, algorithm = tiny_task(), PiModel().build(tiny_task())
    batch = random_batch(task, algorithm.views)
    student = TinyNetwork(task.num_classes)
    expected = copy.deepcopy(student)
    expected(batch.labeled[0])
    algorithm(student, student, batch, torch.tensor(1.0))
    torch.testing.assert_close(dict(student.named_buffers()), dict(expected.named_buffers()))
