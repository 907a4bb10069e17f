"""Operations that move pixels: flip, crop and affine transforms, each as a single gather."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

ONE = 1 << 16  # PIL computes affine source positions in 16.16 fixed point, and so does this
MOTIONS = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")


def gather_pixels(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Pixels at source positions inside the image; rows and columns broadcast to (B, h, w)."""
    index = rows * images.shape[3] + columns
    flat = index.long().flatten(1).unsqueeze(1).expand(-1, images.shape[1], -1)
    return images.flatten(2).gather(2, flat).view(*images.shape[:2], *index.shape[1:])


def gather_framed(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The same with positions starting at 1, and black for those outside."""
    height, width = images.shape[2:]
    framed = F.pad(images, (1, 1, 1, 1))
    return gather_pixels(framed, rows.clamp(0, height + 1), columns.clamp(0, width + 1))


def reflect(position: Tensor, side: int) -> Tensor:
    """Reflect positions into [0, side); the border pixel is not repeated."""
    return (side - 1) - (position.abs() - (side - 1)).abs()


def flip_crop(
    images: Tensor,
    flip: Tensor | None,  # (B,) bool, or None for never
    top: Tensor,  # (B,) of the window, in the padded image
    left: Tensor,
    size: tuple[int, int],
    padding: int,
    reflected: bool = True,
) -> Tensor:
    """A window of each flipped and padded image; padding is reflected or black."""
    height, width = images.shape[2:]
    rows = (top - padding)[:, None] + torch.arange(size[0], device=images.device)
    columns = (left - padding)[:, None] + torch.arange(size[1], device=images.device)
    if reflected:
        rows, columns = reflect(rows, height), reflect(columns, width)
    if flip is not None:
        columns = torch.where(flip[:, None], width - 1 - columns, columns)
    rows, columns = rows[:, :, None], columns[:, None, :]
    return (
        gather_pixels(images, rows, columns)
        if reflected
        else gather_framed(images, rows + 1, columns + 1)
    )


def affine_matrix(motion: Tensor, size: tuple[int, int]) -> Tensor:
    """Matrices (..., 2, 3, B) in fixed point, from target to source pixels.

    `motion` (..., 5, B) has the amounts of `MOTIONS`; at most one per image may differ from 0.
    """
    height, width = size
    degrees, shear_x, shear_y, right, down = motion.double().unbind(-2)
    cosine, sine = (degrees * (math.pi / 180)).cos(), (degrees * (math.pi / 180)).sin()
    xx, xy, yx, yy = cosine, shear_x - sine, shear_y + sine, cosine
    # Rotation is around the image's center, and positions are those of pixel centers.
    x = (width - cosine * width + sine * height + xx + xy) / 2
    y = (height - sine * width - cosine * height + yx + yy) / 2
    # PIL computes pure shifts in floating point, hence the rounding to integers here.
    x = x + (right * width + 0.5).floor()
    y = y + (down * height + 0.5).floor()
    matrix = torch.stack([xx, xy, x, yx, yy, y], dim=-2) * ONE + 0.5
    return matrix.floor().int().view(*motion.shape[:-2], 2, 3, motion.shape[-1])


def affine(images: Tensor, matrix: Tensor) -> Tensor:
    """The nearest source pixel of each target pixel, black outside; matrix (2, 3, B)."""
    height, width = images.shape[2:]
    x = torch.arange(width, dtype=torch.int32, device=images.device)
    y = torch.arange(height, dtype=torch.int32, device=images.device)
    along, down, start = matrix.unsqueeze(-1).unbind(1)
    source = ((down * y + start + ONE).unsqueeze(3) + (along * x).unsqueeze(2)) >> 16
    return gather_framed(images, source[1], source[0])


def move(images: Tensor, name: str, amount: Tensor) -> Tensor:
    zero = torch.zeros_like(amount)
    motion = torch.stack([amount if name == each else zero for each in MOTIONS])
    return affine(images, affine_matrix(motion, (images.shape[2], images.shape[3])))


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    return move(images, "rotate", degrees)


def shear_x(images: Tensor, amount: Tensor) -> Tensor:
    return move(images, "shear_x", amount)


def shear_y(images: Tensor, amount: Tensor) -> Tensor:
    return move(images, "shear_y", amount)


def translate_x(images: Tensor, fraction: Tensor) -> Tensor:
    return move(images, "translate_x", fraction)


def translate_y(images: Tensor, fraction: Tensor) -> Tensor:
    return move(images, "translate_y", fraction)


def cutout(images: Tensor, x: Tensor, y: Tensor, side: Tensor, fill: Tensor) -> Tensor:
    """Fill a square of `side` pixels around (x, y), including both of its end rows."""
    side = side.double()

    def span(center: Tensor, length: int) -> Tensor:  # (B, length)
        start = (center.double() - side / 2).clamp(min=0).floor()  # moved inside, not cut off
        end = (start + side).clamp(max=length).floor()
        position = torch.arange(length, device=images.device)
        return (position >= start[:, None]) & (position <= end[:, None]) & (side > 0)[:, None]

    rows, columns = span(y, images.shape[2]), span(x, images.shape[3])
    box = rows[:, None, :, None] & columns[:, None, None, :]
    return torch.where(box, fill[:, None, None], images)
