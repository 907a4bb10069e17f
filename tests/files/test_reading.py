"""Files from someone else are read within bounds, or refused in a few words."""

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
