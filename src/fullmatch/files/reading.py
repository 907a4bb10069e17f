"""Read files that may come from someone else: no pipe, nothing huge, nothing nested too deeply."""

import json
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

MEBIBYTE = 2**20
TEXT_LIMIT = 256 * MEBIBYTE  # of a log or a list of names; only damage makes it larger
SETTINGS_LIMIT = MEBIBYTE  # of a config
HEADER_LIMIT = 64 * MEBIBYTE  # of a safetensors file
LENGTH_BYTES = 8  # it starts with the length of its header
METADATA = "__metadata__"  # the only entry of the header that is not a tensor
DEPTH = 32  # tables and lists inside each other; our own files have at most six
# A key of more parts than that: reading it takes time that grows with the square of its length.
DEEP_KEY = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{DEPTH}}}"""
)


class UnusableFile(ValueError):
    """What is wrong with a file, in a few words."""


def require_regular(path: Path, limit: int | None = None) -> None:
    """`UnusableFile` for a pipe, a device or a folder, or a file of more bytes than the limit.

    Opening a pipe would wait forever.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise UnusableFile("not a regular file")
    if limit is not None and status.st_size > limit:
        raise UnusableFile(f"larger than {limit // MEBIBYTE:,} MiB")


def require_tensors(path: Path) -> None:
    """`UnusableFile` unless a safetensors file is as long as its header says.

    A reader maps all of a file into memory, also of one that was made huge.
    """
    require_regular(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(LENGTH_BYTES)
        length = int.from_bytes(start, "little")
        if len(start) < LENGTH_BYTES or not 2 <= length <= min(size, HEADER_LIMIT):
            raise UnusableFile("not a safetensors file")
        header = parse_json(file.read(length))
    try:
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != METADATA]
        whole = LENGTH_BYTES + length + max(ends, default=0) == size
    except (LookupError, TypeError, AttributeError):
        raise UnusableFile("its header is damaged") from None
    if not whole:
        raise UnusableFile("it is cut off, or longer than its tensors")


def read_bounded(path: Path, limit: int = TEXT_LIMIT) -> bytes:
    """All bytes of a file; it may be replaced by a pipe at any time, so what is open is checked."""
    require_regular(path, limit)
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UnusableFile("not a regular file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise UnusableFile(f"larger than {limit // MEBIBYTE:,} MiB")
    return content


def read_bounded_text(path: Path, limit: int = TEXT_LIMIT) -> str:
    try:
        return read_bounded(path, limit).decode("utf-8")
    except UnicodeDecodeError:
        raise UnusableFile("not text in UTF-8") from None


def parse_json(text: str | bytes) -> Any:
    """A JSON value; `UnusableFile` where it is not one, or nested too deeply."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        return require_shallow(json.loads(decoded))
    except RecursionError:
        raise UnusableFile("nested too deeply") from None
    except UnusableFile:
        raise
    except ValueError:  # also bytes that are not text, and integers of thousands of digits
        raise UnusableFile("not JSON") from None


def parse_toml(text: str) -> dict[str, Any]:
    """A TOML table; `UnusableFile` says where it is not one."""
    if DEEP_KEY.search(text):
        raise UnusableFile("nested too deeply")
    try:
        table: dict[str, Any] = require_shallow(tomllib.loads(text))
        return table
    except RecursionError:
        raise UnusableFile("nested too deeply") from None
    except UnusableFile:
        raise
    except ValueError as error:
        raise UnusableFile(f"not TOML: {error}") from None


def require_shallow(value: Any) -> Any:
    """The value, where its tables and lists are at most `DEPTH` deep."""
    level = [value]
    for _ in range(DEPTH):
        level = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return value
    raise UnusableFile("nested too deeply")
