"""Embeddings of images under several views, which training on a frozen body reads instead."""

import torch
from torch import Tensor

from fullmatch.data.stores.memory import TensorStore


class EmbeddingStore(TensorStore):
    """Rows (N, V, 1, D) of float32 or float16: V views of each image, the plain one first."""

    def __init__(self, rows: Tensor) -> None:
        if not rows.is_floating_point() or rows.ndim != 4:
            raise ValueError(
                "rows: expected floating-point numbers of shape (N, V, 1, D), "
                f"got {rows.dtype} of shape {tuple(rows.shape)}"
            )
        self.images, self.paths = rows, ()

    def to(self, device: torch.device | str) -> "EmbeddingStore":
        return EmbeddingStore(self.images.to(device))
