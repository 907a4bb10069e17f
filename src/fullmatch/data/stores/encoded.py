"""Encoded pictures, as files, tables and archives hold them, decoded when they are read."""

import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from itertools import accumulate
from typing import BinaryIO, NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fullmatch.data.stores import pictures
from fullmatch.data.stores.decoding import DecoderPool
from fullmatch.errors import UserError

Positions = NDArray[np.int64]


class EncodedPictures(Protocol):
    """Encoded pictures that can be opened in any order, from several processes."""

    def __len__(self) -> int: ...

    def open(self, position: int) -> str | BinaryIO: ...  # what Pillow opens

    def describe(self, position: int) -> str: ...  # the file, and the place in it


class PicturePlace(NamedTuple):
    """One of many encoded pictures."""

    pictures: EncodedPictures
    position: int

    def open(self) -> str | BinaryIO:
        return self.pictures.open(self.position)

    def describe(self) -> str:
        return self.pictures.describe(self.position)


class PictureSubset:
    """Some of other encoded pictures."""

    def __init__(self, whole: EncodedPictures, positions: Positions) -> None:
        self.whole, self.positions = whole, positions

    def __len__(self) -> int:
        return len(self.positions)

    def open(self, position: int) -> str | BinaryIO:
        return self.whole.open(int(self.positions[position]))

    def describe(self, position: int) -> str:
        return self.whole.describe(int(self.positions[position]))


class JoinedPictures:
    """The encoded pictures of several files, one after the other."""

    def __init__(self, parts: Sequence[EncodedPictures]) -> None:
        self.parts = [part for part in parts if len(part)]
        self.ends = list(accumulate(map(len, self.parts)))

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def open(self, position: int) -> str | BinaryIO:
        return self._find(position).open()

    def describe(self, position: int) -> str:
        return self._find(position).describe()

    def _find(self, position: int) -> PicturePlace:
        number = bisect_right(self.ends, position)
        part = self.parts[number]
        return PicturePlace(part, position - (self.ends[number] - len(part)))


class EncodedStore:
    """Encoded pictures, decoded when they are read and brought to one size.

    See `pictures.resize_and_crop` for how a picture gets its size, or `pictures.resize` if they
    are stretched.
    """

    paths: tuple[str, ...] = ()

    def __init__(
        self,
        encoded: EncodedPictures,
        size: tuple[int, int],
        channels: int = 3,
        *,
        stretch: bool = False,
    ) -> None:
        self.encoded = encoded
        self.shape = (channels, *size)
        self.stretch = stretch
        self.pool: DecoderPool | None = None
        self.pin_memory = False

    def __len__(self) -> int:
        return len(self.encoded)

    def with_processes(self, count: int) -> Self:
        """The same pictures, decoded by `count` processes into pinned memory if there is a GPU.

        The processes end when the returned store is garbage collected.
        """
        store = copy(self)
        decode = partial(decode_at, self.encoded, stretch=self.stretch)
        store.pool = DecoderPool(self.shape, count, decode=decode)
        store.pin_memory = torch.cuda.is_available()
        return store

    def read(self, index: Tensor) -> Tensor:
        shape = (len(index), *self.shape)
        images = torch.empty(shape, dtype=torch.uint8, pin_memory=self.pin_memory)
        positions: list[int] = index.tolist()
        readable = self._decode(positions, images.numpy())
        if not all(readable):
            place = self.encoded.describe(positions[readable.index(False)])
            raise UserError(
                f"cannot read the picture {place} (missing, damaged, or no permission); "
                "repair the file or remove it from the data"
            )
        return images

    def decode_all(self, out: Tensor | None = None) -> list[bool]:
        """Decode every picture once; return which are readable; `out` receives the pixels."""
        return self._decode(range(len(self)), None if out is None else out.numpy())

    def _decode(self, positions: Sequence[int], out: NDArray[np.uint8] | None) -> list[bool]:
        if self.pool is not None:
            return self.pool.decode(positions, out)

        def decode(row: int) -> bool:
            place = np.empty(self.shape, np.uint8) if out is None else out[row]
            return decode_at(self.encoded, positions[row], place, stretch=self.stretch)

        return list(pictures.map_in_threads(decode, range(len(positions))))


def decode_at(
    encoded: EncodedPictures, position: int, out: NDArray[np.uint8], *, stretch: bool = False
) -> bool:
    """Decode a picture into `out` (channels, height, width); return whether it could be read."""
    file = pictures.try_read(encoded.open, position)
    return file is not None and pictures.decode_into(file, out, stretch=stretch)


def open_all(encoded: EncodedPictures) -> Iterator[PicturePlace]:
    """Every picture, one after the other."""
    return (PicturePlace(encoded, position) for position in range(len(encoded)))


def file_of_bytes(content: bytes | None) -> BinaryIO:
    """A file that Pillow can open; an empty one, which it rejects, where there is no content."""
    return io.BytesIO(content or b"")
