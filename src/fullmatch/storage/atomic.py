"""Files that appear whole or not at all: whoever fails halfway leaves nothing, or the old file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fullmatch.errors import UserError


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """A place to write to, which gets the name `path` once all went well."""
    if path.exists() and not path.is_file():  # a device or a pipe, which nothing can replace
        yield path
        return
    target = Path(os.path.realpath(path))  # where a link leads to, so that it stays one
    place = target.with_name(f".{target.name[:40]}.{os.getpid()}")  # a name has its limits
    try:
        yield place
        if target.exists():
            place.chmod(target.stat().st_mode)  # a private file stays one
        place.replace(target)
    finally:
        with suppress(OSError):  # on a read-only disk even this fails, and the cause is known
            place.unlink(missing_ok=True)


def write(path: Path, text: str) -> None:
    """Write a file that somebody asked for."""
    with told(path), aside(path) as place:
        # Names of files may be any bytes.
        place.write_text(text, encoding="utf-8", errors="surrogateescape")


@contextmanager
def told(path: Path) -> Iterator[None]:
    """A full disk, or a place that cannot be written to, ends in one line."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write {path}: {error.strerror or error}; mend that, or name another place"
        ) from None
