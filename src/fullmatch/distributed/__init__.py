"""Several processes as one: rank, gather, mean; the identity in one process."""

from fullmatch.distributed.collectives import (
    Sum,
    average_gradients,
    gather,
    joined,
    maximum,
    mean,
    processes,
    rank,
    together,
    told,
    total,
    world_size,
)

__all__ = [
    "Sum",
    "average_gradients",
    "gather",
    "joined",
    "maximum",
    "mean",
    "processes",
    "rank",
    "together",
    "told",
    "total",
    "world_size",
]
