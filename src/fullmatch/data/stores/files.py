"""Picture files, decoded when they are read."""

from collections.abc import Sequence
from copy import copy
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fullmatch.data.stores import pictures
from fullmatch.data.stores.decoding import Decoders
from fullmatch.errors import UserError


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

    def _decode(self, positions: Sequence[int], into: NDArray[np.uint8] | None) -> list[bool]:
        if self.decoders is not None:
            return self.decoders.decode([self.paths[at] for at in positions], into)

        def decode(row: int) -> bool:
            place = np.empty(self.shape, np.uint8) if into is None else into[row]
            return pictures.put(self.paths[positions[row]], place)

        return list(pictures.in_threads(decode, range(len(positions))))
