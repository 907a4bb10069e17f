"""A new folder that has its files from the first moment on."""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path


def make_filled(path: Path, fill: Callable[[Path], None]) -> None:
    """Fill a folder beside the path, then rename it; `FileExistsError` where there is one."""
    if os.path.lexists(path):
        raise FileExistsError(path)
    with suppress(FileExistsError):  # where it is a file, the next line says so
        path.parent.mkdir(parents=True)
    place = make_hidden(path)
    try:
        fill(place)
        place.rename(path)  # onto a folder that has files, this fails
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise FileExistsError(path) from None
        raise
    finally:
        shutil.rmtree(place, ignore_errors=True)


def make_hidden(path: Path) -> Path:
    """A new folder beside the path, whose name is not taken."""
    for number in count():
        place = path.with_name(f".{path.name[:40]}.{os.getpid()}-{number}")
        with suppress(FileExistsError):
            place.mkdir()
            return place
    raise AssertionError("numbers do not end")
