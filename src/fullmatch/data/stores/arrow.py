"""Pictures in Arrow and Parquet files: memory-mapped, so that memory does not grow with them."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from fullmatch.data.stores.encoded import file_of_bytes
from fullmatch.errors import UserError
from fullmatch.files.reading import UnusableFile, require_regular

MAX_PARQUET_IN_MEMORY = 2**30  # bytes; a larger file is copied into an Arrow file once
COPY_ROWS = 1000  # at a time


class ArrowPictures:
    """A column of encoded pictures: bytes, or the struct of bytes and path that `datasets` uses."""

    def __init__(self, path: Path, column: str, table: Any = None) -> None:
        self.path, self.column = path, column
        self.values = _picture_values(open_table(path) if table is None else table, column)

    def __len__(self) -> int:
        return len(self.values)

    def open(self, position: int) -> BinaryIO:
        return file_of_bytes(self.values[position].as_py())

    def describe(self, position: int) -> str:
        return f"{self.path}, row {position}"

    def __getstate__(self) -> tuple[Path, str]:
        return self.path, self.column  # another process maps the file itself

    def __setstate__(self, state: tuple[Path, str]) -> None:
        self.__init__(*state)  # type: ignore[misc]


def open_table(path: Path, max_bytes: int = MAX_PARQUET_IN_MEMORY) -> Any:
    """The table in an Arrow or Parquet file; all of Arrow, and large Parquet, stays on disk."""
    with explained(path):
        require_regular(path)
        table = _read_table(path, max_bytes)
        table.validate(full=True)  # a wrong offset would end the process
    names = table.column_names
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"{path} has more than one column {repeated!r}; keep one of them")
    return table


def _read_table(path: Path, max_bytes: int) -> Any:
    arrow = import_arrow()
    if path.suffix.lower() != ".parquet":
        return _map_arrow(arrow, path)
    from pyarrow import parquet

    with parquet.ParquetFile(path, memory_map=True) as file:
        groups = range(file.metadata.num_row_groups)
        size = sum(file.metadata.row_group(number).total_byte_size for number in groups)
        if size <= max_bytes:
            return file.read()
        return _map_arrow(arrow, _copy_to_arrow(arrow, file, path))


def import_arrow() -> ModuleType:
    """The package that reads Arrow and Parquet, which is optional."""
    try:
        import pyarrow
    except ImportError:
        raise UserError(
            "Arrow and Parquet files need an extra package; run pip install 'fullmatch[hub]'"
        ) from None
    return pyarrow  # type: ignore[no-any-return]


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """One line, with the file, for a file that is damaged or that cannot be opened."""
    arrow = import_arrow()
    try:
        yield
    except (arrow.ArrowException, UnusableFile, OSError, EOFError) as error:
        if isinstance(error, OSError) and error.errno:
            reason = os.strerror(error.errno)
            raise UserError(f"cannot read {path}: {reason}; check the file") from None
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path} is damaged ({reason}); copy or write it again") from None


def _map_arrow(arrow: Any, path: Path) -> Any:
    from pyarrow import ipc

    source = arrow.memory_map(str(path))
    is_file = source.read(6) == b"ARROW1"  # otherwise a stream, which `datasets` writes
    source.seek(0)
    return ipc.open_file(source).read_all() if is_file else ipc.open_stream(source).read_all()


def _copy_to_arrow(arrow: Any, file: Any, path: Path) -> Path:
    """Copy a Parquet file, whose rows cannot be read one by one, into the cache folder."""
    status = path.stat()
    key = repr((str(path.resolve()), status.st_size, status.st_mtime_ns))
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fullmatch"
    copy = folder / f"{path.stem}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.arrow"
    if copy.exists():
        return copy
    folder.mkdir(parents=True, exist_ok=True)
    part = copy.with_name(f"{copy.name}.{os.getpid()}.part")
    try:
        with arrow.ipc.new_file(str(part), file.schema_arrow) as writer:
            for batch in file.iter_batches(COPY_ROWS):
                writer.write_batch(batch)
        os.replace(part, copy)
    finally:
        part.unlink(missing_ok=True)
    return copy


def _picture_values(table: Any, column: str) -> Any:
    from pyarrow import compute, types

    values = table[column]
    return compute.struct_field(values, "bytes") if types.is_struct(values.type) else values
