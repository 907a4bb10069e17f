"""One process at a time in a folder; the lock ends with its process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fullmatch.errors import UserError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]
    import msvcrt


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the folder's lock; `UserError` where another process holds it, unless we `wait`."""
    try:
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}") from None
    try:
        acquire(handle, folder, wait=wait)
        yield
    finally:
        os.close(handle)


def acquire(handle: int, folder: Path, *, wait: bool) -> None:
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        else:
            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except OSError:
        raise UserError(f"another process is training in {folder}; wait for it to end") from None
