"""Nearest pictures by features."""

import numpy as np

from fullmatch.data.quality.photo_features import find_nearest, find_neighbors


def unit_rows(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_nearest_are_those_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    rows, others = unit_rows(rng.normal(size=(20, 8))), unit_rows(rng.normal(size=(30, 8)))
    similarities, index = find_nearest(rows, others, 4)
    table = rows @ others.T
    assert index.tolist() == np.argsort(-table, axis=1)[:, :4].tolist()
    np.testing.assert_allclose(similarities, -np.sort(-table, axis=1)[:, :4], atol=1e-6)
    assert find_nearest(rows, others[:3], 10)[1].shape == (20, 3)


def test_a_picture_is_not_its_own_neighbor_even_among_copies() -> None:
    rows = unit_rows(np.random.default_rng(1).normal(size=(5, 6)))
    rows = np.concatenate([rows, np.tile(rows[:1], (7, 1))])
    similarities, index = find_neighbors(rows, 3)
    assert index.shape == similarities.shape == (12, 3)
    assert not (index == np.arange(12)[:, None]).any()
    copies = [0, *range(5, 12)]
    assert set(index[copies].ravel().tolist()) <= set(copies)
