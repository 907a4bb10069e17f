"""Collectives over all processes; in a single process they return their argument."""

from fullmatch.distributed.collectives import (
    Sum,
    average_gradients,
    broadcast,
    collective,
    gather,
    maximum,
    mean,
    process_group,
    processes,
    rank,
    total,
    world_size,
)

__all__ = [
    "Sum",
    "average_gradients",
    "broadcast",
    "collective",
    "gather",
    "maximum",
    "mean",
    "process_group",
    "processes",
    "rank",
    "total",
    "world_size",
]
