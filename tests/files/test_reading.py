"""Files from someone else are read within bounds, or refused in a few words."""

import json
import os
from pathlib import Path

import pytest

from fullmatch.files.reading import (
    DEPTH,
    UnusableFile,
    parse_json,
    parse_toml,
    read_bounded,
    read_bounded_text,
    require_regular,
    require_tensors,
)


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("ähre", encoding="utf-8")
    assert read_bounded_text(path) == "ähre"
    assert read_bounded(path, limit=5) == "ähre".encode()


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (read_bounded, require_regular):
        with pytest.raises(UnusableFile, match="not a regular file"):
            read(pipe)


@pytest.mark.parametrize("place", ["/dev/zero", "/"])
def test_devices_and_folders_are_refused(place: str) -> None:
    with pytest.raises(UnusableFile, match="not a regular file"):
        read_bounded(Path(place))


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, 2**21 + 1)
    with pytest.raises(UnusableFile, match="larger than 2 MiB"):
        read_bounded(path, limit=2**21)


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xff")
    with pytest.raises(UnusableFile, match="not text in UTF-8"):
        read_bounded_text(path)


def test_values_are_parsed() -> None:
    assert parse_json('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}
    assert parse_toml('a.b = [1]\n[c]\npath = "x.y.z/1.2.3"') == {
        "a": {"b": [1]},
        "c": {"path": "x.y.z/1.2.3"},
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[" * (DEPTH + 1) + "]" * (DEPTH + 1), "nested too deeply"),
        ('{"a":' * 500 + "1" + "}" * 500, "nested too deeply"),
        ("{", "not JSON"),
        ("9" * 5000, "not JSON"),
        (b"\xff\xfe", "not JSON"),
    ],
)
def test_damaged_json(text: str | bytes, reason: str) -> None:
    with pytest.raises(UnusableFile, match=reason):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a" + ".a" * 100_000 + " = 1", "nested too deeply"),
        ('"a" . ' * 100_000 + '"a" = 1', "nested too deeply"),
        ("[a" + ".'a'" * 100_000 + "]", "nested too deeply"),
        ("a = " + "[" * 10_000, "nested too deeply"),
        ("a = " + "{a=" * 10_000, "nested too deeply"),
        ("a" * 300_000 + " = ", "not TOML"),
        ("a = ", "not TOML"),
    ],
)
def test_damaged_toml(text: str, reason: str) -> None:
    """Deep keys once took hours."""
    with pytest.raises(UnusableFile, match=reason):
        parse_toml(text)


def tensor_file(header: object, numbers: bytes = bytes(8)) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


GOOD_HEADER = {
    "__metadata__": {"a": "b"},
    "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a safetensors file"),
        (bytes(4096), "not a safetensors file"),
        (b"\xff" * 16, "not a safetensors file"),
        (tensor_file(GOOD_HEADER, bytes(7)), "cut off"),
        (tensor_file(GOOD_HEADER, bytes(9)), "longer than its tensors"),
        (tensor_file([1]), "its header is damaged"),
        (tensor_file({"x": {"data_offsets": [0]}}), "its header is damaged"),
        (tensor_file({"x": {"data_offsets": [0, "8"]}}), "its header is damaged"),
        (tensor_file({"x": 1})[:9] + b"}" * 50, "not JSON"),
    ],
)
def test_damaged_tensors(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(UnusableFile, match=reason):
        require_tensors(path)


def test_whole_tensors_and_a_file_that_was_made_huge(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(tensor_file(GOOD_HEADER))
    require_tensors(path)
    os.truncate(path, 2**40)
    with pytest.raises(UnusableFile, match="longer than its tensors"):
        require_tensors(path)
