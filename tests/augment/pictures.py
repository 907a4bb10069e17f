"""Images to compare the batched operations with PIL: noise, constant and real ones."""

from collections.abc import Callable

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits, load_sample_images
from torch import Tensor


def noise(channels: int, height: int, width: int) -> Tensor:
    """Uniform noise, noise of narrow ranges, two-valued and constant images."""
    random = torch.Generator().manual_seed(height * width + channels)
    shape = (8, channels, height, width)
    full = torch.randint(256, shape, generator=random)
    low = torch.randint(200, (8, channels, 1, 1), generator=random)
    narrow = low + full % torch.randint(1, 56, (8, channels, 1, 1), generator=random)
    two = torch.where(full < 100, low, low + 50)
    return torch.cat([full, narrow, two, low.expand(shape)]).to(torch.uint8)


def photographs(channels: int) -> Tensor:
    """Crops of two photographs, resized to 32x32."""
    tiles = []
    for photograph in load_sample_images().images:
        for scale in (40, 80, 160):
            for left in range(0, 480, 96):
                tile = Image.fromarray(photograph[scale : 2 * scale, left : left + scale])
                tile = tile.resize((32, 32), Image.Resampling.BILINEAR)
                tiles.append(np.array(tile if channels == 3 else tile.convert("L")))
    return torch.from_numpy(np.stack(tiles)).view(len(tiles), 32, 32, -1).permute(0, 3, 1, 2)


def digits() -> Tensor:
    return torch.from_numpy(load_digits().images[:64] * (255 / 16)).to(torch.uint8)[:, None]


PICTURES: dict[str, Callable[[], Tensor]] = {
    "noise-rgb": lambda: noise(3, 32, 32),
    "noise-gray": lambda: noise(1, 32, 32),
    "noise-wide": lambda: noise(3, 17, 23),
    "noise-16": lambda: noise(3, 16, 16),  # 256 pixels: the minimum that equalize changes
    "noise-tiny": lambda: noise(1, 2, 2),
    "noise-96": lambda: noise(3, 96, 96),
    "photographs-rgb": lambda: photographs(3),
    "photographs-gray": lambda: photographs(1),
    "digits": digits,
}


def by_pil(images: Tensor, operation: Callable[..., Image.Image], *magnitudes: Tensor) -> Tensor:
    """The same operation, applied by PIL to each image."""
    results = []
    for image, *magnitude in zip(images, *(each.tolist() for each in magnitudes), strict=True):
        array = image.permute(1, 2, 0).numpy()
        picture = Image.fromarray(array if len(image) == 3 else array[..., 0])
        result = np.array(operation(picture, *magnitude))
        results.append(torch.from_numpy(result).view(*array.shape).permute(2, 0, 1))
    return torch.stack(results)
