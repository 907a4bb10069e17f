"""Quarter turns of square images, which a head can learn to predict without labels."""

import torch
from torch import Tensor

from fullmatch.core import Task
from fullmatch.errors import UserError


def rotate(images: Tensor, quarter_turns: Tensor) -> Tensor:
    """Rotate each image by its own number (B,) of quarter turns, 0 to 3."""
    rotated = torch.stack([torch.rot90(images, quarter, (2, 3)) for quarter in range(4)])
    return rotated[quarter_turns, torch.arange(len(images), device=images.device)]


def check_square(task: Task, name: str) -> None:
    _, height, width = task.image
    if height == width == 1:
        raise UserError(
            f"{name} rotates pictures, and cannot train on the features of a frozen body; choose "
            "another algorithm, or set model.body = trained"
        )
    if height != width:
        raise UserError(
            f"{name} rotates pictures by 90 degrees, so they must be square, not "
            f"{height}x{width}; crop them, or choose another algorithm"
        )
