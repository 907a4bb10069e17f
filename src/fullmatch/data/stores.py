"""Images of every size behind one contract: read by position, as unsigned bytes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from fullmatch.data import pictures
from fullmatch.errors import UserError


class ImageStore(Protocol):
    """Images of one shape that can be read in any order."""

    @property
    def shape(self) -> tuple[int, int, int]: ...  # (channels, height, width)

    def __len__(self) -> int: ...

    def read(self, index: Tensor) -> Tensor: ...  # (B,) int64 -> (B, C, H, W) uint8


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


class FileStore:
    """Picture files, decoded when they are read; see `pictures.fit` for how they get their size."""

    def __init__(
        self, paths: Sequence[str | Path], size: tuple[int, int], channels: int = 3
    ) -> None:
        self.paths = tuple(str(path) for path in paths)  # a Path takes four times the memory
        self.shape = (channels, *size)

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: Tensor) -> Tensor:
        images = torch.empty((len(index), *self.shape), dtype=torch.uint8)
        positions: list[int] = index.tolist()
        readable = self._decode(positions, images.numpy())
        if not all(readable):
            path = self.paths[positions[readable.index(False)]]
            raise UserError(
                f"cannot read the picture {path} (missing, damaged, or no permission); "
                "mend it or take it out of the data"
            )
        return images

    def readable(self, into: Tensor | None = None) -> list[bool]:
        """Decodes every file once and says which succeeded; `into` keeps the pixels."""
        everything = range(len(self))
        return self._decode(everything, None if into is None else into.numpy())

    def load(self) -> TensorStore:
        """All images decoded into memory."""
        return TensorStore(self.read(torch.arange(len(self))), self.paths)

    def _decode(self, positions: Sequence[int], into: np.ndarray[Any, Any] | None) -> list[bool]:
        channels, *size = self.shape

        def decode(row: int) -> bool:
            path = self.paths[positions[row]]
            pixels = pictures.attempt(
                lambda path: pictures.decode(path, (size[0], size[1]), channels), path
            )
            if pixels is not None and into is not None:
                into[row] = pixels
            return pixels is not None

        return list(pictures.in_threads(decode, range(len(positions))))


class ArrowStore:
    """A column of pictures in a Hugging Face data set, memory-mapped and decoded when read."""

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
        """Opens what `Dataset.save_to_disk` wrote."""
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
        pixels = [pictures.fit(image, (size[0], size[1]), channels) for image in rows]
        return torch.from_numpy(np.stack(pixels))
