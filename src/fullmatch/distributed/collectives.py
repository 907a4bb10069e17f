"""Collectives over all processes; in a single process they return their argument."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor

TIMEOUT = timedelta(hours=6)  # the others wait while the first process evaluates or plans
_collective = False


@contextmanager
def process_group() -> Iterator[None]:
    """Connect to the other processes, with one GPU per process if there are GPUs."""
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # `broadcast` sends objects from CPU memory, so gloo is always needed.
    dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=TIMEOUT)
    try:
        yield
    finally:
        dist.destroy_process_group()


@contextmanager
def collective() -> Iterator[None]:
    """Inside, collectives span all processes; outside, each process is on its own."""
    global _collective
    before, _collective = _collective, True
    try:
        yield
    finally:
        _collective = before


def processes() -> int:
    """The number of processes of this run."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0; 0 if there is only one."""
    return dist.get_rank() if processes() > 1 else 0


def world_size() -> int:
    """The number of processes that collectives span right now."""
    return processes() if _collective else 1


def broadcast(message: Any = None) -> Any:
    """Send an object from the first process to all others; every process returns it."""
    messages = [message]
    dist.broadcast_object_list(messages, device=torch.device("cpu"))
    return messages[0]


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
    """The sum over all processes, with gradient: the sum of their gradients."""

    @staticmethod
    def forward(value: Tensor) -> Tensor:
        return total(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        """Saves nothing; torch.func requires a separate `setup_context`."""

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
    """Replace each gradient by its mean over all processes, in one message."""
    if world_size() == 1:
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    means = mean(torch.cat([gradient.flatten() for gradient in gradients]))
    sizes = [gradient.numel() for gradient in gradients]
    for gradient, part in zip(gradients, torch.split(means, sizes), strict=True):
        gradient.copy_(part.view_as(gradient))
