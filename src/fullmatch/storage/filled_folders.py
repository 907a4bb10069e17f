"""A new folder that has its files from the first moment on."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fullmatch.storage.private_folders import private_folder


def make_filled(path: Path, fill: Callable[[Path], None]) -> None:
    """Fill a folder beside the path, then rename it; `FileExistsError` where there is one."""
    if os.path.lexists(path):
        raise FileExistsError(path)
    with suppress(FileExistsError):  # where it is a file, the next line says so
        path.parent.mkdir(parents=True)
    with private_folder(path) as place:
        fill(place)
        try:
            place.rename(path)  # onto a folder that has files, this fails
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise FileExistsError(path) from None
            raise
