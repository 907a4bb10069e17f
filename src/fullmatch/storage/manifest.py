"""manifest.json: hashes of what a run hands over, written last; needs no torch."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fullmatch.files.reading import require_regular
from fullmatch.storage.json_files import from_json, read_json

FORMAT = 1


class FileState(StrEnum):
    """What became of a file since the run wrote it."""

    WHOLE = "whole"
    CHANGED = "changed"
    MISSING = "missing"
    DAMAGED = "damaged"
    UNCHECKED = "unchecked"  # the run has no hash of it


@dataclass(frozen=True)
class Manifest:
    """The hash and the size in bytes of each file, by its name in the run folder."""

    sha256: dict[str, str]
    sizes: dict[str, int]
    format: int = FORMAT

    def state_of(self, path: Path) -> FileState:
        """How a file compares with what the run wrote."""
        expected = self.sha256.get(path.name)
        if not path.exists():
            return FileState.UNCHECKED if expected is None else FileState.MISSING
        if expected is None:
            return FileState.UNCHECKED
        try:
            # Another size tells enough, and spares reading a file that was made huge.
            same = path.stat().st_size == self.sizes.get(path.name) and hash_file(path) == expected
        except (OSError, ValueError):
            return FileState.DAMAGED
        return FileState.WHOLE if same else FileState.CHANGED


def read_manifest(path: Path) -> Manifest:
    """`ValueError` says what is wrong with the file."""
    table = read_json(path)
    if table.get("format") != FORMAT:
        raise ValueError("another version of fullmatch wrote it")
    return from_json(Manifest, table)


def make_manifest(paths: list[Path]) -> Manifest:
    """Of the files that are there."""
    paths = [path for path in paths if path.exists()]
    sizes = {path.name: path.stat().st_size for path in paths}
    return Manifest({path.name: hash_file(path) for path in paths}, sizes)


def hash_file(path: Path) -> str:
    require_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
