"""What users pass becomes the source of a run."""

from pathlib import Path

import numpy as np
import pytest
import torch

from fullmatch.data.stores.features import FeatureStore
from fullmatch.estimator.sources import (
    source_of_arrays,
    source_of_features,
    source_of_files,
    to_images,
)
from tests.small_pictures import write_pictures

CODES, NAMES = np.array([0, 1, -1]), ("a", "b")


def test_features_are_copied() -> None:
    rows = np.arange(6.0).reshape(3, 2)
    rows.setflags(write=False)
    source = source_of_features(rows, CODES, NAMES)
    assert isinstance(source.images, FeatureStore)
    assert torch.equal(source.images.rows, torch.arange(6.0, dtype=torch.float64).view(3, 2))
    assert source.labels.tolist() == [0, 1, -1]


@pytest.mark.parametrize("flip", [True, False])
def test_a_row_of_pixels_has_no_border(flip: bool) -> None:
    images = to_images(np.zeros((3, 64), np.uint8), (1, -1), (0, 255))
    source = source_of_arrays(images, CODES, NAMES, flip=flip)
    assert source.images.shape == (1, 1, 64)
    assert (source.appearance.padding, source.appearance.flip) == (0, flip)


@pytest.mark.parametrize(
    ("side", "image_size", "frozen", "expected"),
    [
        (100, None, True, 96),
        (200, None, True, 224),
        (200, None, False, 192),
        (200, 48, True, 48),
    ],
)
def test_size_of_files(
    tmp_path: Path, side: int, image_size: int | None, frozen: bool, expected: int
) -> None:
    write_pictures(tmp_path, 3, side=side)
    files = sorted(tmp_path.iterdir())
    source = source_of_files(files, CODES, NAMES, image_size=image_size, flip=False, frozen=frozen)
    assert source.images.shape == (3, expected, expected)
    assert source.classes == NAMES
    assert not source.appearance.flip
