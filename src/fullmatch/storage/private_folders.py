"""Hidden folders to write in, beside the place that what is written goes to.

Each is locked while its process lives. What a killed process leaves has no lock, and is removed.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows, where a folder cannot be locked
    fcntl = None  # type: ignore[assignment]

NAME = re.compile(r"\..+\.\d+-\d+", re.DOTALL)  # .NAME.PROCESS-NUMBER


@contextmanager
def private_folder(path: Path) -> Iterator[Path]:
    """A new folder beside a path, for this process alone; at the end it is removed."""
    place, lock = make_private(path)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def make_private(path: Path) -> tuple[Path, int | None]:
    """A new folder whose name is not taken, and the handle of its lock, where there are locks."""
    for number in count():
        place = path.with_name(f".{path.name[:40]}.{os.getpid()}-{number}")  # names are limited
        with suppress(FileExistsError):
            place.mkdir()
            # Another process may take it for a leftover before it is locked.
            with suppress(BlockingIOError, FileNotFoundError):
                lock = lock_folder(place)
                if place.exists():
                    return place, lock
    raise AssertionError("numbers do not end")


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes have left in a folder and in those inside; links are left."""
    for place, names, _ in os.walk(folder):
        for name in filter(NAME.fullmatch, names):
            remove_unlocked(Path(place, name))
        names[:] = [name for name in names if not NAME.fullmatch(name)]


def remove_unlocked(place: Path) -> None:
    with suppress(OSError):  # another process holds it, or has just removed it
        lock = lock_folder(place)
        if lock is not None:
            shutil.rmtree(place, ignore_errors=True)
            os.close(lock)


def lock_folder(place: Path) -> int | None:
    """The handle of a new lock; None where folders have none. `BlockingIOError` if it is locked."""
    if fcntl is None:
        return None
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if isinstance(error, BlockingIOError):
            raise
        return None  # a network disk without locks
    return handle
