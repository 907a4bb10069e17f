"""Quarter turns, different for each image."""

import torch

from fullmatch.algorithms.rotation import rotate


def test_each_image_has_its_own_rotation() -> None:
    images = torch.arange(36.0).reshape(4, 1, 3, 3)
    actual = rotate(images, torch.tensor([3, 0, 1, 2]))
    for image, original, quarters in zip(actual, images, (3, 0, 1, 2), strict=True):
        torch.testing.assert_close(image, torch.rot90(original, quarters, (1, 2)))
