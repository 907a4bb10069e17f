"""Names of data in tables and shards: `hf:PATH`, data.parquet, 'shards-{000..099}.tar'."""

import glob
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from fullmatch.errors import UserError
from fullmatch.plugins import is_reference

HUB = "hf:"
TABLES = (".parquet", ".arrow")
SHARDS = (".tar", ".tar.gz", ".tgz")
MAX_FILES = 1_000_000  # that a pattern may name
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


def is_table(name: str) -> bool:
    """Whether a name stands for tables or shards, as opposed to a folder, a CSV or a benchmark."""
    if name.startswith(HUB):
        return True
    return name.lower().endswith((*TABLES, *SHARDS)) and not Path(name).expanduser().is_dir()


def local_path(name: str) -> Path | None:
    """Where `hf:PATH` is on this machine; None for a name on the hub."""
    rest = name.removeprefix(HUB)
    path = Path(rest).expanduser()
    return path if path.exists() or rest.startswith(("/", ".", "~")) else None


def make_absolute(name: str) -> str:
    """The same data from any working directory; a name on the hub stays as it is."""
    if not name.startswith(HUB):
        return str(Path(name).expanduser().absolute())
    path = local_path(name)
    return name if path is None else f"{HUB}{path.absolute()}"


def table_exists(name: str) -> bool:
    """Whether the files are there; of a name on the hub this is not known."""
    if name.startswith(HUB):
        path = local_path(name)
        return path is None or path.exists()
    try:
        return bool(expand_pattern(name))
    except UserError:
        return False


def data_exists(name: str) -> bool:
    """Whether the user's own data is there, in whatever form; a function says so when called."""
    if is_reference(name):
        return True
    return table_exists(name) if is_table(name) else Path(name).expanduser().exists()


def data_folder(name: str) -> Path:
    """The folder, or else the file, that holds the user's own data."""
    path = local_path(name) if name.startswith(HUB) else Path(name).expanduser()
    return Path(name) if path is None else path


def table_title(name: str) -> str:
    """A short name for messages and folders: 'photos' for 'data/photos-{000..099}.tar'."""
    path = Path(name.removeprefix(HUB)).expanduser().absolute()
    title = re.split(r"[{*?\[]", path.name.partition(":")[0])[0]
    for suffix in (*TABLES, *SHARDS):
        title = title.removesuffix(suffix)
    return title.rstrip("-_.") or path.parent.name or "pictures"


def expand_pattern(pattern: str) -> list[Path]:
    """The files that a name with {000..099}, {train,test}, * or ? stands for, in order."""
    if Path(pattern).expanduser().exists():
        return [Path(pattern).expanduser()]
    names = list(islice(_expand_braces(pattern), MAX_FILES + 1))
    if len(names) > MAX_FILES:
        raise UserError(f"{pattern} names more than {MAX_FILES:,} files; shorten its range")
    return [path for name in names for path in _find_files(name)]


def _find_files(name: str) -> list[Path]:
    path = Path(name).expanduser()
    if path.exists():
        return [path]
    found = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]
    if not found:
        raise UserError(f"no such file: {path}; check the path")
    return found


def _expand_braces(pattern: str) -> Iterator[str]:
    """As a shell does; braces without a comma or a range stay as they are."""
    start = pattern.find("{")
    parts, end = _split_braces(pattern, start) if start >= 0 else ([], 0)
    if not parts:
        yield pattern
        return
    head, tail = pattern[:start], pattern[end:]
    options: Iterator[str]
    if len(parts) > 1:
        options = (option for part in parts for option in _expand_braces(part))
    elif numbers := _RANGE.fullmatch(parts[0]):
        options = _count(*numbers.groups())
    else:
        options = (f"{{{option}}}" for option in _expand_braces(parts[0]))
    for option in options:
        yield from (head + option + rest for rest in _expand_braces(tail))


def _split_braces(pattern: str, start: int) -> tuple[list[str], int]:
    """What the commas of the braces at `start` divide, and where they end; nothing if they do not.

    Commas in inner braces belong to these.
    """
    parts, depth = [""], 0
    for position in range(start, len(pattern)):
        character = pattern[position]
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            return parts, position + 1
        if character == "," and depth == 1:
            parts.append("")
        elif position > start:
            parts[-1] += character
    return [], start


def _count(first: str, last: str) -> Iterator[str]:
    """The numbers of 000..099, as wide as they are written."""
    width = len(first) if first.startswith("0") else 0
    return (f"{number:0{width}}" for number in range(int(first), int(last) + 1))
