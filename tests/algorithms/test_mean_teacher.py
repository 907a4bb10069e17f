"""Mean Teacher: the averaged network is used but not changed."""

import torch

from fullmatch.algorithms import MeanTeacher
from tests.algorithms.agreement import assert_agrees
from tests.networks import TinyNetwork, random_batch, tiny_task
from tests.reference import consistency


def test_agrees_with_the_reference() -> None:
    assert_agrees(MeanTeacher(), consistency.MeanTeacher)


def test_teacher_is_not_changed() -> None:
    task, algorithm = tiny_task(), MeanTeacher().build(tiny_task())
    student, teacher = TinyNetwork(task.num_classes), TinyNetwork(task.num_classes)
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    batch = random_batch(task, algorithm.views)
    algorithm(student, teacher, batch, torch.tensor(1.0)).loss.backward()
    torch.testing.assert_close(teacher.state_dict(), before, rtol=0, atol=0)
    assert all(parameter.grad is None for parameter in teacher.parameters())
