"""Many processes as one: each of these is the identity when there is only one."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor

PATIENCE = timedelta(hours=6)  # the first process may evaluate or plan while the others wait
_together = False


@contextmanager
def joined() -> Iterator[None]:
    """Meets the other processes, each on a GPU of its own where there are GPUs."""
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # What is said between processes lies in ordinary memory, so gloo is there in any case.
    dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=PATIENCE)
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextmanager
def together() -> Iterator[None]:
    """In here all processes do the same, and may ask each other; outside, each is on its own."""
    global _together
    before, _together = _together, True
    try:
        yield
    finally:
        _together = before


def processes() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if processes() > 1 else 0


def world_size() -> int:
    """How many processes do the same as this one right now."""
    return processes() if _together else 1


def told(thing: Any = None) -> Any:
    """Anything that the first process says, to it and to all others."""
    box = [thing]
    dist.broadcast_object_list(box, device=torch.device("cpu"))
    return box[0]


def maximum(value: Tensor) -> Tensor:
    """The largest value over all processes."""
    if world_size() == 1:
        return value
    value = value.clone()
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value


def total(value: Tensor) -> Tensor:
    """The sum over all processes, without gradient."""
    if world_size() == 1:
        return value
    value = value.detach().clone()
    dist.all_reduce(value)
    return value


class Sum(torch.autograd.Function):
    """The sum over all processes; as each one's loss depends on it, so does the gradient."""

    @staticmethod
    def forward(value: Tensor) -> Tensor:
        return total(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        """Nothing is kept; that this stands apart lets torch.func take gradients too."""

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return cast(Tensor, Sum.apply(gradient))


def mean(value: Tensor) -> Tensor:
    """The mean over all processes, without gradient."""
    return value if world_size() == 1 else total(value) / world_size()


def gather(rows: Tensor) -> Tensor:
    """The rows of all processes, in order of rank, without gradient."""
    if world_size() == 1:
        return rows
    parts = [torch.empty_like(rows) for _ in range(world_size())]
    cast(Any, dist).all_gather(parts, rows.detach().contiguous())
    return torch.cat(parts)


def average_gradients(parameters: Sequence[Tensor]) -> None:
    """Every process's gradient becomes the mean of all, in one message."""
    if world_size() == 1:
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    means = mean(torch.cat([gradient.flatten() for gradient in gradients]))
    sizes = [gradient.numel() for gradient in gradients]
    for gradient, part in zip(gradients, torch.split(means, sizes), strict=True):
        gradient.copy_(part.view_as(gradient))
