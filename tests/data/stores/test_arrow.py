"""Arrow and Parquet files are opened without reading their pictures into memory."""

import os
import struct
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from fullmatch.data.stores.arrow import ArrowPictures, open_table
from fullmatch.errors import UserError
from tests.encoded_pictures import encode, noise, write_parquet

FILES = [encode(pixels) for pixels in noise(4)]


def write_arrow(path: Path, *, stream: bool) -> Path:
    table = pa.table({"image": FILES})
    new = ipc.new_stream if stream else ipc.new_file
    with new(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return path


@pytest.mark.parametrize("stream", [True, False])
def test_both_forms_of_arrow_are_memory_mapped(tmp_path: Path, stream: bool) -> None:
    path = write_arrow(tmp_path / "a.arrow", stream=stream)
    before = pa.total_allocated_bytes()
    pictures = ArrowPictures(path, "image")
    assert pa.total_allocated_bytes() - before < sum(map(len, FILES)) / 2
    assert [pictures.open(row).read() for row in range(4)] == FILES


def test_a_large_parquet_file_is_copied_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = write_parquet(tmp_path / "a.parquet", FILES)
    table = open_table(path, max_bytes=10)
    assert table["image"].to_pylist() == FILES
    (copy,) = (tmp_path / "cache" / "fullmatch").iterdir()
    written = copy.stat().st_mtime_ns
    assert open_table(path, max_bytes=10).equals(table)
    assert copy.stat().st_mtime_ns == written
    write_parquet(path, FILES[:2])
    assert open_table(path, max_bytes=10).num_rows == 2


@pytest.mark.parametrize("name", ["a.arrow", "b.parquet"])
def test_damaged_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_arrow(path, stream=True) if name == "a.arrow" else write_parquet(path, FILES)
    content = path.read_bytes()
    for part in (content[: len(content) // 2], b"", b"something else entirely"):
        path.write_bytes(part)
        with pytest.raises(UserError, match=rf"{name} is damaged .*; copy or write it again"):
            open_table(path)
    path.unlink()
    with pytest.raises(UserError, match=rf"cannot read .*{name}: No such file"):
        open_table(path)


def test_error_names_the_missing_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError, match=r"pip install 'fullmatch\[hub\]'"):
        open_table(tmp_path / "a.parquet")


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    for name in ("a.arrow", "b.parquet"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(UserError, match="not a regular file"):
            open_table(tmp_path / name)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table([pa.array(FILES)] * 2, ["image", "image"]), path)
    with pytest.raises(UserError, match="more than one column 'image'"):
        open_table(path)


def test_offsets_that_point_elsewhere(tmp_path: Path) -> None:
    """Reading there would end the process."""
    path = write_arrow(tmp_path / "a.arrow", stream=False)
    content = path.read_bytes()
    offsets = struct.pack("<3i", 0, len(FILES[0]), len(FILES[0]) + len(FILES[1]))
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, struct.pack("<3i", 0, 2**30, 2**30 + 1)))
    with pytest.raises(UserError, match=r"a\.arrow is damaged"):
        open_table(path)
