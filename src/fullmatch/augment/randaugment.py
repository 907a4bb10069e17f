"""RandAugment: every image draws its own operations and magnitudes, one after the other."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from fullmatch.augment import color, geometry

# The range from which a magnitude is drawn, uniformly; the motions stand last, in their order.
OPERATIONS: dict[str, tuple[float, float]] = {
    "autocontrast": (0.0, 0.0),
    "brightness": (0.05, 0.95),
    "color": (0.05, 0.95),
    "contrast": (0.05, 0.95),
    "equalize": (0.0, 0.0),
    "identity": (0.0, 0.0),
    "posterize": (4.0, 8.0),  # bits, cut to whole ones
    "sharpness": (0.05, 0.95),
    "solarize": (0.0, 256.0),
    "rotate": (-30.0, 30.0),  # degrees
    "shear_x": (-0.3, 0.3),
    "shear_y": (-0.3, 0.3),
    "translate_x": (-0.3, 0.3),  # of the width
    "translate_y": (-0.3, 0.3),
}
NUMBER = {name: number for number, name in enumerate(OPERATIONS)}


class Parameters(NamedTuple):
    """What the images of a batch carry: their operation's magnitude, and neutral ones elsewhere."""

    matrix: Tensor  # (..., 2, 3, B), the others (..., B)
    factor: Tensor
    colored: Tensor
    contrasted: Tensor
    sharpened: Tensor
    stretched: Tensor
    equalized: Tensor
    bits: Tensor
    threshold: Tensor


def parameters(operation: Tensor, magnitude: Tensor, size: tuple[int, int]) -> Parameters:
    """Of all the operations (..., B) at once, since small tensors cost as much as large ones."""
    number = torch.arange(len(OPERATIONS), device=operation.device)
    chosen = operation.unsqueeze(-2) == number[:, None]  # (..., 14, B)
    flags = dict(zip(OPERATIONS, chosen.unbind(-2), strict=True))
    moving = chosen[..., -len(geometry.MOTIONS) :, :]
    blended = flags["brightness"] | flags["color"] | flags["contrast"] | flags["sharpness"]
    return Parameters(
        matrix=geometry.affine_matrix(moving * magnitude.unsqueeze(-2), size),
        factor=torch.where(blended, magnitude, 1.0),
        colored=flags["color"],
        contrasted=flags["contrast"],
        sharpened=flags["sharpness"],
        stretched=flags["autocontrast"],
        equalized=flags["equalize"],
        bits=torch.where(flags["posterize"], magnitude, 8.0).floor(),
        threshold=torch.where(flags["solarize"], magnitude, 256.0),
    )


def perform(images: Tensor, of: Parameters) -> Tensor:
    """One operation per image, without a branch: all are done, and all but one change nothing."""
    one = color.per_image
    images = geometry.affine(images, of.matrix)
    luma = color.grey(images)
    backdrop = (  # black, for brightness, when none of the three
        one(of.contrasted) * color.mean_level(luma)
        + one(of.colored) * luma
        + one(of.sharpened) * color.smooth(images)
    )
    result = color.blend(backdrop, images, of.factor)
    result = color.pick(one(of.stretched), color.autocontrast(images), result)
    result = color.pick(one(of.equalized), color.equalize(images), result)
    return color.solarize(color.posterize(result, of.bits), of.threshold)


def apply(images: Tensor, operations: Tensor, magnitudes: Tensor) -> Tensor:
    """Every image's own operations, (count, B), in turn."""
    every = parameters(operations, magnitudes, (images.shape[2], images.shape[3]))
    for turn in zip(*every, strict=True):
        images = perform(images, Parameters(*turn))
    return images


class RandAugment(nn.Module):
    """Applies `count` random operations, each with a probability, and then cuts out a square."""

    ranges: Tensor  # (14, 2)
    fill: Tensor  # (3,)

    def __init__(
        self,
        count: int,
        probability: float,
        cutout: tuple[float, float],  # range of the side, as a fraction of the width
        fill: tuple[int, int, int],
    ) -> None:
        super().__init__()
        self.count = count
        self.probability = probability
        self.cutout = cutout
        # Buffers, since a captured graph cannot copy constants from the host.
        self.register_buffer("ranges", torch.tensor(list(OPERATIONS.values())), persistent=False)
        self.register_buffer("fill", torch.tensor(fill, dtype=torch.uint8), persistent=False)

    @property
    def draws(self) -> int:
        """Random numbers that an image takes."""
        return (3 if self.probability < 1 else 2) * self.count + 3

    def chosen(self, chance: Tensor) -> tuple[Tensor, Tensor]:
        """Operations and magnitudes, (count, B) each, of uniform random numbers."""
        kind, strength, *applied = torch.split(chance, self.count)
        operation = whole(kind, len(OPERATIONS))
        low, high = self.ranges[operation].unbind(-1)
        if applied:
            operation = torch.where(applied[0] < self.probability, operation, NUMBER["identity"])
        return operation, low + (high - low) * strength

    def forward(self, images: Tensor, chance: Tensor) -> Tensor:
        """`chance` (draws, B) holds uniform random numbers."""
        _, channels, height, width = images.shape
        images = apply(images, *self.chosen(chance[:-3]))
        low, high = self.cutout
        side, x, y = chance[-3:]
        side = (low + (high - low) * side) * width
        return geometry.cutout(images, x * width, y * height, side, self.fill[:channels])


def whole(chance: Tensor, below: int) -> Tensor:
    """Whole numbers from 0, of uniform random numbers in [0, 1)."""
    return (chance * below).long()  # never `below` itself: float32 rounds the product down
