"""Images of every size behind one contract: read by position, as unsigned bytes."""

from typing import Protocol

import torch
from torch import Tensor


class ImageStore(Protocol):
    """Images of one shape that can be read in any order."""

    @property
    def shape(self) -> tuple[int, int, int]: ...  # (channels, height, width)

    def __len__(self) -> int: ...

    def read(self, index: Tensor) -> Tensor: ...  # (B,) int64 -> (B, C, H, W) uint8


def evenly(count: int, most: int) -> Tensor:
    """Up to `most` of so many positions, evenly spread: some data are sorted by class."""
    return torch.linspace(0, count - 1, min(count, most), dtype=torch.float64).round().long()
