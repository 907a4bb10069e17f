"""Runs an algorithm beside its reference, on random batches, and compares loss and memory."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from fullmatch.core import Algorithm, Batch, Network, Task
from tests.networks import TinyNetwork, random_batch, tiny_task


class Reference(Protocol):
    """Plain numbers in, a plain number out; keeps its memory by the names of the buffers."""

    def memory(self) -> dict[str, Any]: ...

    def __call__(
        self, student: Network, teacher: Network, batch: Batch, progress: float
    ) -> float: ...


def opinionated(num_classes: int) -> TinyNetwork:
    """A random network that is sure of some pictures and not of others."""
    network = TinyNetwork(num_classes)
    with torch.no_grad():
        network.head.weight.mul_(12)
    return network


def assert_agrees(
    spec: Any,
    reference: Callable[[Any, Algorithm], Reference],
    *,
    progress: Sequence[float] = (0.0, 0.1, 0.3, 0.9),
    task: Task | None = None,
) -> None:
    torch.manual_seed(0)
    task = task or tiny_task()
    student, teacher = opinionated(task.num_classes), opinionated(task.num_classes)
    algorithm = spec.build(task)
    expected = reference(spec, algorithm)
    for step, share in enumerate(progress):
        batch = random_batch(task, algorithm.views, unlabeled=12)
        torch.manual_seed(step)
        slow = expected(copy.deepcopy(student), teacher, batch, share)
        torch.manual_seed(step)
        fast = algorithm(student, teacher, batch, torch.tensor(share))
        torch.testing.assert_close(float(fast.loss.detach()), slow, rtol=1e-5, atol=1e-5)
    state = algorithm.state_dict()
    for name, value in expected.memory().items():
        found = state[name]
        torch.testing.assert_close(found, torch.tensor(value, dtype=found.dtype))
    with torch.no_grad():
        assert all(value.isfinite().all() for value in state.values())
