"""Features that the user has computed, one row per sample, in place of images."""

import torch
from torch import Tensor

from fullmatch.data.stores.embeddings import EmbeddingStore
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.data.stores.memory import TensorStore


class FeatureStore(EmbeddingStore):
    """Rows (N, D) of floating-point numbers, kept as (N, 1, 1, D): images one pixel high."""

    def __init__(self, rows: Tensor) -> None:
        super().__init__(rows[:, None, None])

    @property
    def rows(self) -> Tensor:
        return self.images[:, 0, 0]

    def to(self, device: torch.device | str) -> "FeatureStore":
        return FeatureStore(self.rows.to(device))


def read_store(images: ImageStore, index: Tensor) -> TensorStore:
    """Some of a store's images, or rows of features, in memory."""
    if isinstance(images, FeatureStore):
        return FeatureStore(images.rows[index].cpu())
    return TensorStore(images.read(index).cpu())
