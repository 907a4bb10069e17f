"""Images of every size behind one contract: read by position, as unsigned bytes."""

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fullmatch.data import pictures
from fullmatch.data.decoders import Decoders
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
        self.decoders: Decoders | None = None
        self.pinned = False

    def __len__(self) -> int:
        return len(self.paths)

    def forked(self, processes: int) -> "FileStore":
        """The same files, decoded by processes until it is dropped, ready to be sent to a GPU."""
        store = copy(self)
        store.decoders = Decoders(self.shape, processes)
        store.pinned = torch.cuda.is_available()
        return store

    def read(self, index: Tensor) -> Tensor:
        shape = (len(index), *self.shape)
        images = torch.empty(shape, dtype=torch.uint8, pin_memory=self.pinned)
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

    def _decode(self, positions: Sequence[int], into: NDArray[np.uint8] | None) -> list[bool]:
        if self.decoders is not None:
            return self.decoders.decode([self.paths[at] for at in positions], into)

        def decode(row: int) -> bool:
            place = np.empty(self.shape, np.uint8) if into is None else into[row]
            return pictures.put(self.paths[positions[row]], place)

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


def evenly(count: int, most: int) -> Tensor:
    """Up to `most` of so many positions, evenly spread: some data are sorted by class."""
    return torch.linspace(0, count - 1, min(count, most), dtype=torch.float64).round().long()
