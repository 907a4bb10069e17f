"""Picture files, decoded when they are read."""

from collections.abc import Sequence
from copy import copy
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fullmatch.data.stores import pictures
from fullmatch.data.stores.decoding import DecoderPool
from fullmatch.errors import UserError


class FileStore:
    """Picture files, decoded when they are read and brought to one size.

    See `pictures.resize_and_crop` for how a picture gets its size.
    """

    def __init__(
        self, paths: Sequence[str | Path], size: tuple[int, int], channels: int = 3
    ) -> None:
        self.paths = tuple(str(path) for path in paths)  # a Path takes four times the memory
        self.shape = (channels, *size)
        self.pool: DecoderPool | None = None
        self.pin_memory = False

    def __len__(self) -> int:
        return len(self.paths)

    def with_processes(self, count: int) -> "FileStore":
        """The same files, decoded by `count` processes into pinned memory if there is a GPU.

        The processes end when the returned store is garbage collected.
        """
        store = copy(self)
        store.pool = DecoderPool(self.shape, count)
        store.pin_memory = torch.cuda.is_available()
        return store

    def read(self, index: Tensor) -> Tensor:
        shape = (len(index), *self.shape)
        images = torch.empty(shape, dtype=torch.uint8, pin_memory=self.pin_memory)
        positions: list[int] = index.tolist()
        readable = self._decode(positions, images.numpy())
        if not all(readable):
            path = self.paths[positions[readable.index(False)]]
            raise UserError(
                f"cannot read the picture {path} (missing, damaged, or no permission); "
                "repair the file or remove it from the data"
            )
        return images

    def decode_all(self, out: Tensor | None = None) -> list[bool]:
        """Decode every file once and return which ones are readable; `out` receives the pixels."""
        return self._decode(range(len(self)), None if out is None else out.numpy())

    def _decode(self, positions: Sequence[int], out: NDArray[np.uint8] | None) -> list[bool]:
        if self.pool is not None:
            return self.pool.decode([self.paths[position] for position in positions], out)

        def decode(row: int) -> bool:
            place = np.empty(self.shape, np.uint8) if out is None else out[row]
            return pictures.decode_into(self.paths[positions[row]], place)

        return list(pictures.map_in_threads(decode, range(len(positions))))
