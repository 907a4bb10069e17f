"""Quarter turns of square pictures, which a head learns to tell without any label."""

import torch
from torch import Tensor

from fullmatch.core import Task
from fullmatch.errors import UserError


def turned(images: Tensor, turns: Tensor) -> Tensor:
    """Each image turned by its own number (B,) of quarter turns, 0 to 3."""
    every = torch.stack([torch.rot90(images, quarter, (2, 3)) for quarter in range(4)])
    return every[turns, torch.arange(len(images), device=images.device)]


def check_square(task: Task, name: str) -> None:
    _, height, width = task.image
    if height != width:
        raise UserError(
            f"{name} turns pictures by quarters, so they must be square, not {height}x{width}; "
            "crop them, or choose another algorithm"
        )
