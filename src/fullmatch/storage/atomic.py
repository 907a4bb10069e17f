"""Files that are complete or not there: a failed write leaves nothing, or the old file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fullmatch.errors import UserError
from fullmatch.storage.private_folders import private_folder


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to, renamed to `path` when the block succeeds.

    A link is replaced, never followed: a folder of someone else may have links to your files.
    """
    with private_folder(path) as folder:
        place = folder / path.name
        yield place
        if path.exists() and not path.is_symlink():
            place.chmod(path.stat().st_mode)  # a private file stays private
        place.replace(path)


@contextmanager
def replacing_chosen(path: Path) -> Iterator[Path]:
    """The same for a path that the user has named: a link stays a link, a device is written to."""
    if path.exists() and not path.is_file():  # nothing can replace a device or a pipe
        yield path
        return
    with replacing(Path(os.path.realpath(path))) as place:
        yield place


def write_text(path: Path, text: str) -> None:
    """Write a file that the user asked for."""
    with explained_errors(path), replacing_chosen(path) as place:
        # File names in the text may be any bytes.
        place.write_text(text, encoding="utf-8", errors="surrogateescape")


@contextmanager
def explained_errors(path: Path) -> Iterator[None]:
    """A full disk, or a place that cannot be written to, ends in one line."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}; fix that, or choose another path"
        ) from None
