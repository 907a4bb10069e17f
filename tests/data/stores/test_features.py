"""Rows of features take the place of images."""

import pytest
import torch

from fullmatch.data import TensorStore
from fullmatch.data.quality.fingerprints import compute_digests
from fullmatch.data.stores.features import FeatureStore, read_store


def test_rows_are_images_one_pixel_high() -> None:
    rows = torch.randn(7, 5, dtype=torch.float64)
    store = FeatureStore(rows)
    assert (len(store), store.shape, store.paths) == (7, (1, 1, 5), ())
    assert torch.equal(store.rows, rows)
    assert torch.equal(store.read(torch.tensor([3]))[0, 0, 0], rows[3])
    assert isinstance(store.to("cpu"), FeatureStore)


def test_integers_are_not_features() -> None:
    with pytest.raises(ValueError, match="expected floating-point numbers"):
        FeatureStore(torch.zeros(3, 4, dtype=torch.int64))


def test_part_of_a_store() -> None:
    rows, index = torch.randn(7, 5), torch.tensor([4, 1])
    part = read_store(FeatureStore(rows), index)
    assert isinstance(part, FeatureStore)
    assert torch.equal(part.rows, rows[index])
    images = torch.randint(0, 256, (7, 1, 3, 3), dtype=torch.uint8)
    assert torch.equal(read_store(TensorStore(images), index).images, images[index])


def test_equal_rows_are_different_samples() -> None:
    assert len(set(compute_digests(FeatureStore(torch.ones(6, 2))))) == 6
    assert len(set(compute_digests(TensorStore(torch.ones(6, 1, 2, 2, dtype=torch.uint8))))) == 1
