"""Pictures in tar files, read where they are: nothing is unpacked."""

import mmap
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fullmatch.data.stores.encoded import Positions, file_of_bytes


class TarPictures:
    """Pictures in one tar file, by where each begins and how long it is."""

    def __init__(self, path: Path, starts: Positions, sizes: Positions, names: list[str]) -> None:
        self.path, self.starts, self.sizes = path, starts, sizes
        # All names as one string, which takes less memory than a list of them.
        self.names = "".join(names)
        self.name_ends = np.cumsum([len(name) for name in names], dtype=np.int64)
        self.content = _map_file(path)

    def __len__(self) -> int:
        return len(self.starts)

    def open(self, position: int) -> BinaryIO:
        start = int(self.starts[position])
        return file_of_bytes(self.content[start : start + int(self.sizes[position])])

    def describe(self, position: int) -> str:
        start = int(self.name_ends[position - 1]) if position else 0
        return f"{self.path}, {self.names[start : int(self.name_ends[position])]}"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "content"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.content = _map_file(self.path)  # another process maps the file itself


def _map_file(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
