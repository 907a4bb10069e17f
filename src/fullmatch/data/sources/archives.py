"""Find, verify and download the files of a benchmark.

This is written by hand because `torchvision.datasets` can neither read a packed archive nor look
in several folders, unpickles CIFAR without limits, and checks the hashes of unpacked files only
for some of the data sets. The download itself is torchvision's.
"""

import gzip
import hashlib
import os
import tarfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedIOBase
from pathlib import Path
from typing import TypeVar, cast

from fullmatch.data.sources.catalog import Benchmark
from fullmatch.errors import UserError

Content = TypeVar("Content")


class BenchmarkFiles:
    """The files of a benchmark in a folder or a .tar.gz archive, verified when they are read."""

    def __init__(self, benchmark: Benchmark, place: Path) -> None:
        self.benchmark = benchmark
        self.place = place
        self.packed = benchmark.archive is not None and place.is_file()
        if benchmark.archive is not None and self.packed:
            with place.open("rb") as file:
                _verify(file, benchmark.archive[1], place)

    def read(self, name: str, parse: Callable[[BufferedIOBase], Content]) -> Content:
        path = self.place / name
        try:
            with self._open(name) as file:
                return parse(file)
        except (UserError, MemoryError):
            raise
        except PermissionError:
            raise UserError(f"no permission to read {path}; change its permissions") from None
        except Exception as error:  # Parsers of damaged files raise anything.
            raise _damaged_error(path, str(error)) from None

    @contextmanager
    def _open(self, name: str) -> Iterator[BufferedIOBase]:
        if self.packed:
            with tarfile.open(self.place) as archive:
                member = archive.extractfile(f"{self.benchmark.folder}/{name}")
                assert member is not None
                yield cast(BufferedIOBase, member)
            return
        path = self.place / name
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            _verify(file, dict(self.benchmark.files)[name], path)
            file.seek(0)
            yield file


def download_benchmark(benchmark: Benchmark, root: Path, allowed: bool) -> Path:
    """Download the published files; if that is impossible, raise an error that says what to do."""
    if not benchmark.url:
        raise _missing_error(benchmark, root, "cannot be downloaded without asking its owners")
    if not allowed:
        raise _missing_error(benchmark, root, "downloading is turned off")
    folder = root / benchmark.folder
    try:
        if benchmark.archive is None:
            for name in benchmark.missing_files(folder):
                _download(benchmark.url + name, folder / name)
        else:
            name, md5 = benchmark.archive
            _download(benchmark.url + name, root / name)
            with (root / name).open("rb") as file:
                _verify(file, md5, root / name)
            # Unpacked for later runs: reading a file from an archive scans it from the start.
            with tarfile.open(root / name) as archive:
                unpack_archive(archive, root)
    except (OSError, RuntimeError) as error:
        raise _missing_error(benchmark, root, f"could not be downloaded ({error})") from None
    return folder


def unpack_archive(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack all files of an archive, none of them outside the folder."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
        return
    for member in archive:  # the first releases of Python 3.11 have no filter
        inside = (folder / member.name).resolve().is_relative_to(folder.resolve())
        if inside and (member.isfile() or member.isdir()):
            archive.extract(member, folder)


def _download(url: str, path: Path) -> None:
    # Try to connect first: without a network this fails early, before anything is written.
    with urllib.request.urlopen(url, timeout=10):
        pass
    from torchvision.datasets.utils import download_url

    part = path.with_name(f"{path.name}.part")
    try:
        download_url(url, str(part.parent), part.name)
        os.replace(part, path)
    finally:
        with suppress(OSError):  # a broken disk has already raised an error
            part.unlink(missing_ok=True)


def _missing_error(benchmark: Benchmark, root: Path, reason: str) -> UserError:
    folder = root / benchmark.folder
    kind = "the files" if all(md5 for _, md5 in benchmark.files) else "the folders"
    archive = f", or {root / benchmark.archive[0]}" if benchmark.archive else ""
    searched = ", ".join(str(place) for place in benchmark.search_folders(root))
    return UserError(
        f"{benchmark.name} was not found in {searched}, and {reason}; put {kind} "
        f"{', '.join(benchmark.missing_files(folder))} into {folder}{archive}, or a file "
        f"{root / benchmark.name}.npz with train_x, train_y, test_x, test_y (uint8, NHWC); "
        "set FULLMATCH_DATA to use another data folder"
    )


def _verify(file: BufferedIOBase, expected: str, path: Path) -> None:
    digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if digest != expected:
        raise _damaged_error(path, f"its MD5 hash is {digest}, expected {expected}")


def _damaged_error(path: Path, reason: str) -> UserError:
    line = " ".join(reason.split())
    return UserError(f"{path} is damaged ({line}); delete it and download it again")
