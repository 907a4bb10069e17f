"""Compares the loss and memory of an algorithm with its reference, on random batches."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from fullmatch.core import Algorithm, Batch, Network, Task
from tests.networks import TinyNetwork, random_batch, tiny_task


class Reference(Protocol):
    """A slow implementation; `memory` has the names of the buffers."""

    def memory(self) -> dict[str, Any]: ...

    def __call__(
        self, student: Network, teacher: Network, batch: Batch, progress: float
    ) -> float: ...


def confident_network(num_classes: int, scale: float = 12) -> TinyNetwork:
    """A random network that is confident about some images but not others."""
    network = TinyNetwork(num_classes)
    with torch.no_grad():
        network.head.weight.mul_(scale)
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
    # Confident enough for thresholds of 0.95: the reference must see selected images and others.
    student, teacher = (confident_network(task.num_classes, scale=60) for _ in range(2))
    algorithm = spec.build(task)
    expected = reference(spec, algorithm)
    selected = []
    for step, share in enumerate(progress):
        batch = random_batch(task, algorithm.views, unlabeled=12)
        torch.manual_seed(step)
        slow = expected(copy.deepcopy(student), teacher, batch, share)
        torch.manual_seed(step)
        fast = algorithm(student, teacher, batch, torch.tensor(share))
        torch.testing.assert_close(float(fast.loss.detach()), slow, rtol=1e-5, atol=1e-5)
        if "selected" in fast.metrics:
            selected.append(float(fast.metrics["selected"]))
    assert not selected or any(0 < share < 1 for share in selected)
    state = algorithm.state_dict()
    for name, value in expected.memory().items():
        actual = state[name]
        torch.testing.assert_close(actual, torch.tensor(value, dtype=actual.dtype))
    with torch.no_grad():
        assert all(value.isfinite().all() for value in state.values())
