"""Pictures in memory become the images that they are."""

from typing import Any

import numpy as np
import pytest
from PIL import Image

from fullmatch.errors import UserError
from fullmatch.inference.picture_inputs import list_pictures

RGB = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)


def images(given: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in list_pictures(given)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (RGB, [RGB]),
        (RGB.transpose(2, 0, 1), [RGB]),
        (RGB[None], [RGB]),
        ([RGB, RGB[:2]], [RGB, RGB[:2]]),
        (RGB[:, :, 0], [RGB[:, :, 0]]),
        (RGB[:, :, :1], [RGB[:, :, 0]]),
        (RGB[None, :, :, 0].repeat(2, axis=0), [RGB[:, :, 0], RGB[:, :, 0]]),
        (Image.fromarray(RGB), [RGB]),
    ],
)
def test_layouts(given: Any, expected: list[np.ndarray]) -> None:
    found = images(given)
    assert len(found) == len(expected)
    assert all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (RGB / 255, "pixels are float64, expected uint8"),
        (RGB[0, 0], r"shape \(3,\) is not a picture"),
        (np.zeros((2, 8, 8, 7), np.uint8), "channels, expected 1, 3 or 4"),
        (3, "cannot predict int; give paths"),
    ],
)
def test_anything_else_is_one_line(given: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        images(given)
