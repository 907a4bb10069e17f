"""Picture files, decoded when they are read."""

from collections.abc import Sequence
from pathlib import Path

from fullmatch.data.stores.encoded import EncodedStore


class PictureFileList:
    """Picture files by their paths."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self.paths = tuple(str(path) for path in paths)  # a Path takes four times the memory

    def __len__(self) -> int:
        return len(self.paths)

    def open(self, position: int) -> str:
        return self.paths[position]

    def describe(self, position: int) -> str:
        return self.paths[position]


class FileStore(EncodedStore):
    """Picture files, each with its path."""

    def __init__(
        self,
        paths: Sequence[str | Path],
        size: tuple[int, int],
        channels: int = 3,
        *,
        stretch: bool = False,
    ) -> None:
        files = PictureFileList(paths)
        super().__init__(files, size, channels, stretch=stretch)
        self.paths = files.paths
