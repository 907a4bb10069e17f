"""A Hugging Face data set on disk, memory-mapped."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fullmatch.data.stores import pictures
from fullmatch.errors import UserError


class ArrowStore:
    """A column of pictures in a Hugging Face data set, memory-mapped and decoded when read."""

    paths: tuple[str, ...] = ()

    def __init__(
        self, dataset: Any, size: tuple[int, int], channels: int = 3, column: str = "image"
    ) -> None:
        if column not in dataset.column_names:
            raise UserError(
                f"no column {column!r} in this data set; it has {', '.join(dataset.column_names)}"
            )
        self.dataset = dataset.select_columns([column])
        self.column = column
        self.shape = (channels, *size)

    @classmethod
    def open(
        cls, path: Path, size: tuple[int, int], channels: int = 3, column: str = "image"
    ) -> "ArrowStore":
        """Open a data set written by `Dataset.save_to_disk`."""
        try:
            import datasets
        except ImportError:
            raise UserError(
                "Hugging Face data sets need an extra package; run pip install 'fullmatch[hub]'"
            ) from None
        return cls(datasets.load_from_disk(str(path)), size, channels, column)

    def __len__(self) -> int:
        return len(self.dataset)

    def read(self, index: Tensor) -> Tensor:
        channels, *size = self.shape
        rows = self.dataset[index.tolist()][self.column]
        pixels = [pictures.resize_and_crop(image, (size[0], size[1]), channels) for image in rows]
        return torch.from_numpy(np.stack(pixels))
