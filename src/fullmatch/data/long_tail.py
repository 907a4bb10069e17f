"""Long-tailed class sizes, which fall exponentially from the first class to the last.

An imbalance of 100 means that the first class is 100 times as large as the last one; -100 is the
reversed order, 1 means equal sizes.
"""

import numpy as np
from numpy.typing import NDArray

Sizes = NDArray[np.int64]


def class_weights(imbalance: float, num_classes: int) -> NDArray[np.float64]:
    """Sizes of the classes relative to the largest class."""
    steps = np.arange(num_classes) / max(num_classes - 1, 1)
    weights = abs(imbalance) ** -steps
    return weights[::-1] if imbalance < 0 else weights


def long_tailed_sizes(total: int, weights: NDArray[np.float64]) -> Sizes:
    """Sizes that add up to `total`: the largest one times the weights, rounded down.

    A larger total makes no class smaller. Where classes tie, the first one comes first.
    """
    # No class gets more than the largest one, whose size is at most this.
    most = min(total, int((total + len(weights)) / weights.sum()) + 1)
    # The size that the largest class has when a class grows to 1, 2, ... images.
    growth = np.arange(1, most + 1)[:, None] / weights
    order = np.argsort(growth, axis=None, kind="stable")[:total]
    return np.bincount(order % len(weights), minlength=len(weights))


def largest_long_tailed_sizes(available: Sizes, weights: NDArray[np.float64]) -> Sizes:
    """The largest sizes in these proportions of which every class has enough images."""
    limit = ((available + 1) / weights).min()
    pairs = zip(available, weights, strict=True)
    return np.array([(np.arange(1, most + 1) / weight < limit).sum() for most, weight in pairs])


def least_total(weights: NDArray[np.float64]) -> int:
    """The smallest total of which every class gets an image."""
    return int(np.floor(weights / weights.min() + 1e-9).sum())
