"""Quarter turns, each picture its own."""

import torch

from fullmatch.algorithms.rotation import rotate


def test_each_picture_turns_by_its_own_quarters() -> None:
    images = torch.arange(36.0).reshape(4, 1, 3, 3)
    found = rotate(images, torch.tensor([3, 0, 1, 2]))
    for image, original, quarters in zip(found, images, (3, 0, 1, 2), strict=True):
        torch.testing.assert_close(image, torch.rot90(original, quarters, (1, 2)))
