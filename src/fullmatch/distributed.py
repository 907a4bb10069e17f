"""Many processes as one: each of these is the identity when there is only one."""

from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor


def world_size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if world_size() > 1 else 0


def maximum(value: Tensor) -> Tensor:
    """The largest value over all processes."""
    if world_size() == 1:
        return value
    value = value.clone()
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value


def mean(value: Tensor) -> Tensor:
    """The mean over all processes, without gradient."""
    if world_size() == 1:
        return value
    value = value.detach().clone()
    dist.all_reduce(value)
    return value / world_size()


def gather(rows: Tensor) -> Tensor:
    """The rows of all processes, in order of rank, without gradient."""
    if world_size() == 1:
        return rows
    parts = [torch.empty_like(rows) for _ in range(world_size())]
    cast(Any, dist).all_gather(parts, rows.detach().contiguous())
    return torch.cat(parts)
