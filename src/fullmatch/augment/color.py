"""Operations on pixel values, bit-equal to PIL's; one factor per image.

Compiled for a GPU, a fused multiply-add may change about one value in 10,000 by one level.
"""

import torch
from torch import Tensor


def per_image(value: Tensor) -> Tensor:
    return value[:, None, None, None]


def pick(chosen: Tensor, images: Tensor, others: Tensor) -> Tensor:
    """`torch.where` for bytes, as three bit operations, which are much faster on a CPU."""
    return others ^ ((images ^ others) & -chosen.to(torch.uint8))


def to_gray(images: Tensor) -> Tensor:
    """Luma (B, 1, H, W) as integer-valued floats; exact, since all values are below 2**24."""
    if images.shape[1] == 1:
        return images.float()
    red, green, blue = images.float().unbind(1)
    luma = (red * 19595 + green * 38470 + blue * 7471 + 32768) / 65536
    return luma.floor().unsqueeze(1)


def mean_level(luma: Tensor) -> Tensor:
    """Rounded mean of each image, (B, 1, 1, 1); in integers, so that halves are exact."""
    pixels = luma.shape[2] * luma.shape[3]
    total = luma.sum(dim=(1, 2, 3), keepdim=True, dtype=torch.int64)
    return (2 * total + pixels).div(2 * pixels, rounding_mode="floor").float()


def smooth(images: Tensor) -> Tensor:
    """A 3x3 mean with weight 5 in the middle; the outermost pixels stay unchanged."""
    values = images.float()
    rows = values[:, :, :-2] + values[:, :, 1:-1] + values[:, :, 2:]
    box = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
    result = values.clone()
    # A multiple of 1/13 is never a half, so floating point errors do not affect rounding.
    result[:, :, 1:-1, 1:-1] = ((box + 4 * values[:, :, 1:-1, 1:-1]) / 13 + 0.5).floor()
    return result


def blend(backdrop: Tensor, images: Tensor, factor: Tensor) -> Tensor:
    """Interpolate from the backdrop (factor 0) to the images (factor 1), rounded down."""
    return (backdrop + per_image(factor) * (images - backdrop)).to(torch.uint8)


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    return blend(torch.zeros_like(images), images, factor)


def color(images: Tensor, factor: Tensor) -> Tensor:
    return blend(to_gray(images), images, factor)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    return blend(mean_level(to_gray(images)), images, factor)


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    return blend(smooth(images), images, factor)


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Keep the upper `bits` (an integer from 0 to 8) of each value."""
    mask = 256 - torch.exp2(8 - bits.float())
    return images & per_image(mask.to(torch.uint8))


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """Invert values at or above the threshold."""
    return images ^ -(images >= per_image(threshold)).to(torch.uint8)


def autocontrast(images: Tensor) -> Tensor:
    """Stretch each channel to 0..255; in float64, since integer results must not round down."""
    # As int: compiled for a CPU, the minimum of bytes is 0, since the compiler pads with zeros.
    low = images.int().amin(dim=(2, 3), keepdim=True).double()
    high = images.amax(dim=(2, 3), keepdim=True).double()
    # `255 / tensor` would multiply by the reciprocal, which rounds twice.
    scale = torch.full_like(low, 255) / (high - low)
    flat = high == low
    offset = torch.where(flat, 0, low * scale)
    return (images * torch.where(flat, 1, scale) - offset).to(torch.uint8)


def equalize(images: Tensor) -> Tensor:
    """Equalize the histogram of each channel."""
    batch, channels, height, width = images.shape
    if height * width < 256:  # too few pixels for 256 levels: PIL returns such images unchanged
        return images
    values = images.flatten(2).long()
    counts = torch.zeros(batch, channels, 256, dtype=torch.int32, device=images.device)
    counts = counts.scatter_add(2, values, torch.ones_like(values, dtype=torch.int32))
    below = counts.cumsum(2, dtype=torch.int32) - counts
    brightest = counts.gather(2, images.flatten(2).amax(2, keepdim=True).long())
    step = (height * width - brightest).div(255, rounding_mode="floor")
    level = (below + step // 2).div(step.clamp(min=1), rounding_mode="floor").clamp(max=255)
    same = torch.arange(256, dtype=torch.int32, device=images.device)
    table = torch.where(step > 0, level, same).to(torch.uint8)
    return table.gather(2, values).view_as(images)
