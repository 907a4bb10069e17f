"""Evenly spaced positions, and values that are cached per store."""

import weakref

import pytest
import torch

from fullmatch.data.stores.image_store import ImageStore, cached_per_store, evenly_spaced
from fullmatch.data.stores.memory import TensorStore


@pytest.mark.parametrize(
    ("count", "limit", "positions"),
    [(5, 10, [0, 1, 2, 3, 4]), (5, 5, [0, 1, 2, 3, 4]), (9, 3, [0, 4, 8]), (1, 4, [0]), (0, 4, [])],
)
def test_evenly_spaced(count: int, limit: int, positions: list[int]) -> None:
    assert evenly_spaced(count, limit).tolist() == positions


def test_a_value_is_computed_once_per_store_and_dropped_with_it() -> None:
    calls: list[int] = []

    @cached_per_store
    def size(store: ImageStore) -> int:
        calls.append(len(store))
        return len(store)

    first, second = (TensorStore(torch.zeros(n, 1, 2, 2, dtype=torch.uint8)) for n in (3, 4))
    assert [size(first), size(second), size(first)] == [3, 4, 3]
    assert calls == [3, 4]
    reference = weakref.ref(first)
    del first
    assert reference() is None
