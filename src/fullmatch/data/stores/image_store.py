"""The interface that all image stores share: read by position, as unsigned bytes."""

from collections.abc import Callable
from functools import wraps
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

Value = TypeVar("Value")


class ImageStore(Protocol):
    """Images of one shape that can be read in any order."""

    @property
    def shape(self) -> tuple[int, int, int]: ...  # (channels, height, width)

    @property
    def paths(self) -> tuple[str, ...]: ...  # the files they came from, empty if none

    def __len__(self) -> int: ...

    def read(self, index: Tensor) -> Tensor: ...  # (B,) int64 -> (B, C, H, W) uint8


def evenly_spaced(count: int, limit: int) -> Tensor:
    """Up to `limit` of `count` positions, evenly spaced because data is often sorted by class."""
    return torch.linspace(0, count - 1, min(count, limit), dtype=torch.float64).round().long()


def cached_per_store(compute: Callable[[ImageStore], Value]) -> Callable[[ImageStore], Value]:
    """Cache a function of a store for as long as the store lives; its images never change.

    `functools.cache` would keep every store alive.
    """
    cache: WeakKeyDictionary[ImageStore, Value] = WeakKeyDictionary()

    @wraps(compute)
    def cached(store: ImageStore) -> Value:
        if store not in cache:
            cache[store] = compute(store)
        return cache[store]

    return cached
