"""Files that are complete or not there: a failed write leaves nothing, or the old file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fullmatch.errors import UserError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to, renamed to `path` when the block succeeds."""
    if path.exists() and not path.is_file():  # a device or a pipe, which nothing can replace
        yield path
        return
    target = Path(os.path.realpath(path))  # a link stays a link
    place = target.with_name(f".{target.name[:40]}.{os.getpid()}")  # file names are limited
    try:
        yield place
        if target.exists():
            place.chmod(target.stat().st_mode)  # a private file stays private
        place.replace(target)
    finally:
        with suppress(OSError):  # on a read-only disk even this fails, and the cause is known
            place.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file that the user asked for."""
    with explained_errors(path), replacing(path) as place:
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
