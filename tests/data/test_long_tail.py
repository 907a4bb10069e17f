"""Sizes of long-tailed classes, as published and at the edges."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fullmatch.data.long_tail import (
    class_weights,
    largest_long_tailed_sizes,
    least_total,
    long_tailed_sizes,
)


@pytest.mark.parametrize(
    ("imbalance", "sizes"),
    [
        (100, [1500, 899, 539, 323, 193, 116, 69, 41, 25, 15]),
        (150, [1500, 859, 492, 282, 161, 92, 53, 30, 17, 10]),
        (100, [500, 299, 179, 107, 64, 38, 23, 13, 8, 5]),
        (-100, [40, 66, 111, 185, 309, 516, 861, 1437, 2397, 4000]),
    ],
)
def test_published_sizes_of_cifar10(imbalance: float, sizes: list[int]) -> None:
    weights = class_weights(imbalance, 10)
    assert long_tailed_sizes(sum(sizes), weights).tolist() == sizes


@given(st.integers(0, 300), st.floats(1, 50), st.integers(2, 12))
def test_sizes_add_up_and_grow_with_the_total(total: int, imbalance: float, classes: int) -> None:
    weights = class_weights(imbalance, classes)
    sizes, more = long_tailed_sizes(total, weights), long_tailed_sizes(total + 1, weights)
    assert sizes.sum() == total
    assert (np.diff(sizes) <= 0).all()
    assert (more >= sizes).all()


@given(st.lists(st.integers(0, 60), min_size=2, max_size=6), st.floats(1, 20), st.booleans())
def test_largest_sizes_fit_and_one_more_does_not(
    available: list[int], imbalance: float, reverse: bool
) -> None:
    weights = class_weights(-imbalance if reverse else imbalance, len(available))
    sizes = largest_long_tailed_sizes(np.array(available), weights)
    assert (sizes <= available).all()
    assert (long_tailed_sizes(int(sizes.sum()), weights) == sizes).all()


@pytest.mark.parametrize("imbalance", [1, 10])
def test_sizes_of_a_thousand_classes_need_little_memory(imbalance: float) -> None:
    tracemalloc.start()
    sizes = long_tailed_sizes(100_000, class_weights(imbalance, 1000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sizes.sum() == 100_000
    assert sizes[0] == pytest.approx(imbalance * sizes[-1], rel=0.1)
    assert peak < 100e6  # of a table of all images by all classes: 1600e6


def test_equal_sizes() -> None:
    weights = class_weights(1, 3)
    assert long_tailed_sizes(7, weights).tolist() == [3, 2, 2]
    assert largest_long_tailed_sizes(np.array([5, 9, 4]), weights).tolist() == [4, 4, 4]


def test_one_class_has_everything() -> None:
    assert long_tailed_sizes(7, class_weights(10, 1)).tolist() == [7]


@pytest.mark.parametrize("imbalance", [1, 2, 10, 20, 100])
def test_least_total_gives_every_class_an_image(imbalance: float) -> None:
    weights = class_weights(imbalance, 10)
    assert long_tailed_sizes(least_total(weights), weights).min() == 1
