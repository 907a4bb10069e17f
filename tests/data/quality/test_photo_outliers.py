"""Pictures of another kind than the labeled ones, by features."""

import numpy as np
import pytest

from fullmatch.data.quality.photo_outliers import (
    MIN_LABELED,
    MIN_PICTURES,
    find_photo_outliers,
    measure_typicality,
)


def make_rows(counts: list[int], seed: int = 0) -> np.ndarray:
    """Clusters of descriptors: positive, as a network gives them."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(size=(len(counts), 40)) ** 4
    rows = [c + 0.05 * rng.uniform(size=(n, 40)) for c, n in zip(centers, counts, strict=True)]
    return np.concatenate(rows).astype(np.float32)


def test_another_kind_is_found_the_least_typical_first() -> None:
    rows = make_rows([60, 60, 3])
    labeled = np.zeros(123, bool)
    labeled[[*range(8), *range(60, 68)]] = True
    outliers = find_photo_outliers(rows, labeled)
    assert set(outliers) == {120, 121, 122}
    typical = measure_typicality(rows, labeled)
    assert outliers == sorted(outliers, key=lambda at: typical[at])


def test_ordinary_pictures_are_not() -> None:
    rows = make_rows([60, 60])
    labeled = np.arange(120) % 6 == 0
    assert len(find_photo_outliers(rows, labeled)) <= 3


def test_labeled_pictures_are_not_called_outliers() -> None:
    rows = make_rows([60, 60, 1])
    labeled = np.arange(121) % 6 == 0
    assert labeled[120]
    assert 120 not in find_photo_outliers(rows, labeled)
    typical = measure_typicality(rows, labeled)
    assert typical.argmin() == 120  # it does not count for itself


@pytest.mark.parametrize(
    ("labels", "pictures"), [(MIN_LABELED - 1, 100), (0, 100), (12, MIN_PICTURES - 1), (0, 0)]
)
def test_nothing_is_said_about_few_pictures(labels: int, pictures: int) -> None:
    labeled = np.arange(pictures) < labels
    rows = np.random.default_rng(0).normal(size=(pictures, 5)).astype(np.float32)
    assert find_photo_outliers(rows, labeled) == []


def test_equal_pictures_are_no_problem() -> None:
    rows = np.ones((50, 4), np.float16)
    assert find_photo_outliers(rows, np.arange(50) < 20) == []
