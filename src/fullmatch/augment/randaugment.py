"""RandAugment with random operations and magnitudes for every image, not for every batch."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from fullmatch.augment import color, geometry

# Range of the uniform magnitude of each operation; the motions are last, in their order.
OPERATIONS: dict[str, tuple[float, float]] = {
    "autocontrast": (0.0, 0.0),
    "brightness": (0.05, 0.95),
    "color": (0.05, 0.95),
    "contrast": (0.05, 0.95),
    "equalize": (0.0, 0.0),
    "identity": (0.0, 0.0),
    "posterize": (4.0, 8.0),  # bits, rounded down
    "sharpness": (0.05, 0.95),
    "solarize": (0.0, 256.0),
    "rotate": (-30.0, 30.0),  # degrees
    "shear_x": (-0.3, 0.3),
    "shear_y": (-0.3, 0.3),
    "translate_x": (-0.3, 0.3),  # of the width
    "translate_y": (-0.3, 0.3),
}
# Where an operation with a magnitude changes nothing, if not at 0.
NEUTRAL = {
    "brightness": 1.0,
    "color": 1.0,
    "contrast": 1.0,
    "posterize": 8.0,
    "sharpness": 1.0,
    "solarize": 256.0,
}
NUMBER = {name: number for number, name in enumerate(OPERATIONS)}


class OperationParameters(NamedTuple):
    """For each image, the magnitude of its operation, and neutral values for all others."""

    matrix: Tensor  # (..., 2, 3, B), the others (..., B)
    factor: Tensor
    colored: Tensor
    contrasted: Tensor
    sharpened: Tensor
    stretched: Tensor
    equalized: Tensor
    bits: Tensor
    threshold: Tensor


def operation_parameters(
    operation: Tensor, magnitude: Tensor, size: tuple[int, int]
) -> OperationParameters:
    """Parameters of all operations (..., B) at once: small tensors cost as much as large ones."""
    number = torch.arange(len(OPERATIONS), device=operation.device)
    chosen = operation.unsqueeze(-2) == number[:, None]  # (..., 14, B)
    flags = dict(zip(OPERATIONS, chosen.unbind(-2), strict=True))
    moving = chosen[..., -len(geometry.MOTIONS) :, :]
    blended = flags["brightness"] | flags["color"] | flags["contrast"] | flags["sharpness"]
    return OperationParameters(
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


def apply_operation(images: Tensor, parameters: OperationParameters) -> Tensor:
    """One operation per image, without branches: all run, and all but one change nothing."""
    per_image = color.per_image
    images = geometry.affine(images, parameters.matrix)
    luma = color.to_gray(images)
    backdrop = (  # black, for brightness, if none of the three
        per_image(parameters.contrasted) * color.mean_level(luma)
        + per_image(parameters.colored) * luma
        + per_image(parameters.sharpened) * color.smooth(images)
    )
    result = color.blend(backdrop, images, parameters.factor)
    result = color.pick(per_image(parameters.stretched), color.autocontrast(images), result)
    result = color.pick(per_image(parameters.equalized), color.equalize(images), result)
    return color.solarize(color.posterize(result, parameters.bits), parameters.threshold)


def apply_operations(images: Tensor, operations: Tensor, magnitudes: Tensor) -> Tensor:
    """Apply the operations (count, B) of each image one after another."""
    parameters = operation_parameters(operations, magnitudes, (images.shape[2], images.shape[3]))
    for each in zip(*parameters, strict=True):
        images = apply_operation(images, OperationParameters(*each))
    return images


class RandAugment(nn.Module):
    """Applies `count` random operations, each with a probability, and then cutout."""

    ranges: Tensor  # (14, 2)
    numbers: Tensor  # of the operations to choose from
    fill: Tensor  # (3,)

    def __init__(
        self,
        count: int,
        probability: float,
        cutout: tuple[float, float],  # range of the side, relative to the width
        fill: tuple[int, int, int],
        *,
        names: tuple[str, ...] = tuple(OPERATIONS),  # of the operations to choose from
        strength: float = 1.0,
    ) -> None:
        super().__init__()
        self.count = count
        self.probability = probability
        self.cutout = (cutout[0] * strength, cutout[1] * strength)
        ranges = [scale_range(name, strength) for name in OPERATIONS]
        # Buffers, since a recorded graph cannot copy constants from the host.
        self.register_buffer("ranges", torch.tensor(ranges), persistent=False)
        numbers = [NUMBER[name] for name in names]
        self.register_buffer("numbers", torch.tensor(numbers), persistent=False)
        self.all = numbers == list(NUMBER.values())
        self.register_buffer("fill", torch.tensor(fill, dtype=torch.uint8), persistent=False)

    @property
    def draws(self) -> int:
        """Random numbers per image."""
        return (3 if self.probability < 1 else 2) * self.count + 3

    def choose_operations(self, chance: Tensor) -> tuple[Tensor, Tensor]:
        """Operations and magnitudes, (count, B) each, from uniform random numbers."""
        kind, strength, *applied = torch.split(chance, self.count)
        operation = to_integers(kind, len(self.numbers))
        operation = operation if self.all else self.numbers[operation]
        low, high = self.ranges[operation].unbind(-1)
        if applied:
            operation = torch.where(applied[0] < self.probability, operation, NUMBER["identity"])
        return operation, low + (high - low) * strength

    def forward(self, images: Tensor, chance: Tensor) -> Tensor:
        """`chance` (draws, B) holds uniform random numbers."""
        _, channels, height, width = images.shape
        if self.count:
            images = apply_operations(images, *self.choose_operations(chance[:-3]))
        low, high = self.cutout
        side, x, y = chance[-3:]
        side = (low + (high - low) * side) * width
        return geometry.cutout(images, x * width, y * height, side, self.fill[:channels])


def scale_range(name: str, strength: float) -> tuple[float, float]:
    """The magnitudes of an operation, moved toward the one that changes nothing."""
    low, high = OPERATIONS[name]
    if strength == 1:  # exactly, which the formula below is not
        return low, high
    neutral = NEUTRAL.get(name, 0.0)
    return neutral + strength * (low - neutral), neutral + strength * (high - neutral)


def to_integers(chance: Tensor, below: int) -> Tensor:
    """Integers in [0, below) from uniform random numbers in [0, 1)."""
    return (chance * below).long()  # never `below` itself: float32 rounds the product down
