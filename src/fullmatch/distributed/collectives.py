"""Collectives over all processes, with gradient; in a single process they return their argument.

Each process holds every `world_size`-th row of a batch: row 0 is in the first process, row 1 in
the second. The objective is the mean of the losses of all processes: a loss that is a mean over
rows needs nothing from here, one that divides by something else takes it from the whole batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor

_alone = False


@contextmanager
def alone() -> Iterator[None]:
    """Inside, this process works as if it were the only one."""
    global _alone
    before, _alone = _alone, True
    try:
        yield
    finally:
        _alone = before


def world_size() -> int:
    """The number of processes that train together."""
    several = dist.is_available() and dist.is_initialized() and not _alone
    return dist.get_world_size() if several else 1


def rank() -> int:
    """The number of this process, from 0; 0 if there is only one."""
    return dist.get_rank() if world_size() > 1 else 0


class Sum(torch.autograd.Function):
    """The sum over all processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(value: Tensor) -> Tensor:
        value = value.clone()
        dist.all_reduce(value)
        return value

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        """Saves nothing; torch.func requires a separate `setup_context`."""

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return cast(Tensor, Sum.apply(gradient.contiguous()))


class Gather(torch.autograd.Function):
    """The rows of all processes, in the order of the whole batch."""

    @staticmethod
    def forward(rows: Tensor) -> Tensor:
        parts = rows.new_empty(world_size() * len(rows), *rows.shape[1:])
        dist.all_gather_into_tensor(parts, rows.contiguous())
        return parts.view(world_size(), *rows.shape).transpose(0, 1).flatten(0, 1)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        """Saves nothing; torch.func requires a separate `setup_context`."""

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return own_rows(cast(Tensor, Sum.apply(gradient.contiguous())))


def total(value: Tensor) -> Tensor:
    """The sum over all processes."""
    return value if world_size() == 1 else cast(Tensor, Sum.apply(value))


def mean(value: Tensor) -> Tensor:
    """The mean over all processes."""
    return value if world_size() == 1 else total(value) / world_size()


def gather(rows: Tensor) -> Tensor:
    """The rows of all processes, in the order of the whole batch."""
    return rows if world_size() == 1 else cast(Tensor, Gather.apply(rows))


def maximum(value: Tensor) -> Tensor:
    """The largest value over all processes, without gradient."""
    if world_size() == 1:
        return value
    value = value.detach().clone()
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value


def own_rows(rows: Tensor, groups: int = 1) -> Tensor:
    """The rows of this process, of those of a whole batch, or of several joined views of it."""
    if world_size() == 1:
        return rows
    size = len(rows) // groups
    return torch.cat([view[rank() :: world_size()] for view in torch.split(rows, size)])
