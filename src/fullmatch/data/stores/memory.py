"""Images in memory, on any device."""

from collections.abc import Sequence

import torch
from torch import Tensor


class TensorStore:
    """Images held in memory, on any device; `paths` are the files they came from, if any."""

    def __init__(self, images: Tensor, paths: Sequence[str] = ()) -> None:
        if images.dtype != torch.uint8 or images.ndim != 4:
            raise ValueError(
                f"images: expected uint8 of shape (N, C, H, W), "
                f"got {images.dtype} of shape {tuple(images.shape)}"
            )
        self.images, self.paths = images, tuple(paths)

    @property
    def shape(self) -> tuple[int, int, int]:
        _, channels, height, width = self.images.shape
        return channels, height, width

    def __len__(self) -> int:
        return len(self.images)

    def read(self, index: Tensor) -> Tensor:
        return self.images.index_select(0, index.to(self.images.device))

    def to(self, device: torch.device | str) -> "TensorStore":
        return TensorStore(self.images.to(device), self.paths)
