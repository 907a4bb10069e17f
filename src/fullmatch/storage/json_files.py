"""Dataclasses as JSON files: written atomically, read with every type checked."""

import dataclasses
import enum
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from fullmatch.errors import UserError
from fullmatch.files.reading import parse_json, read_bounded
from fullmatch.storage.atomic import replacing

T = TypeVar("T")
JSON = dict[str, Any]  # a table of JSON values, before it is checked
LARGEST = 2**63  # of integers: larger ones do not fit into a float or an array
# Halves of characters; those at the end of the range stand for bytes of file names.
INVALID_TEXT = re.compile("[\ud800-\udc7f\udd00-\udfff]")


class DamagedFile(UserError):
    """A file of a run that cannot be used, and what to do about it."""

    def __init__(self, path: Path, reason: str, advice: str) -> None:
        super().__init__(f"{path} is damaged ({reason}); {advice}")
        self.path, self.reason = path, reason


class WrongValue(ValueError):
    """A value that does not have the type of its field; the text names the place."""


def read_json(path: Path) -> JSON:
    """The table in a JSON file; `ValueError` where it holds anything else."""
    table = parse_json(read_bounded(path))
    if not isinstance(table, dict):
        raise ValueError("not a table")
    return table


def write_json(path: Path, value: object) -> None:
    with replacing(path) as place:
        place.write_text(json.dumps(to_json(value), indent=1) + "\n", encoding="utf-8")


def to_json(value: Any) -> Any:
    """Plain containers of a dataclass and all that is in it."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: to_json(part) for key, part in value.items()}
    return [to_json(part) for part in value] if isinstance(value, list | tuple) else value


def from_json(cls: type[T], table: object, where: str = "") -> T:
    """A dataclass from a table; keys it does not know are ignored, as later versions may add some.

    `WrongValue` names the first value whose type is not that of its field.
    """
    if not isinstance(table, dict):
        raise WrongValue(f"{where or 'it'} is not a table")
    hints = get_type_hints(cls)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        place = f"{where}.{field.name}" if where else field.name
        if field.name in table:
            values[field.name] = checked(table[field.name], hints[field.name], place)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise WrongValue(f"{place} is missing")
    return cls(**values)


def checked(value: Any, to: Any, where: str) -> Any:
    """The value as the type of its field."""
    origin, arguments = get_origin(to), get_args(to)
    if to is Any:
        return value
    if origin in (Union, UnionType):
        if value is None and NoneType in arguments:
            return None
        (to,) = (option for option in arguments if option is not NoneType)
        return checked(value, to, where)
    if dataclasses.is_dataclass(to) and isinstance(to, type):
        return from_json(to, value, where)
    if isinstance(to, type) and issubclass(to, enum.Enum):
        if value not in [member.value for member in to]:
            raise WrongValue(f"{where} is {value!r}")
        return to(value)
    if origin is tuple:
        return checked_tuple(value, arguments, where)
    if origin is dict:
        if not isinstance(value, dict):
            raise WrongValue(f"{where} is not a table")
        return {
            checked_scalar(key, str, where): checked(part, arguments[1], f"{where}.{key}")
            for key, part in value.items()
        }
    return checked_scalar(value, to, where)


def checked_tuple(value: Any, arguments: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise WrongValue(f"{where} is not a list")
    if arguments[-1] is Ellipsis:
        return tuple(checked(part, arguments[0], where) for part in value)
    if len(value) != len(arguments):
        raise WrongValue(f"{where} has {len(value)} entries, expected {len(arguments)}")
    pairs = zip(value, arguments, strict=True)
    return tuple(checked(part, to, where) for part, to in pairs)


def checked_scalar(value: Any, to: Any, where: str) -> Any:
    if to is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
    if not isinstance(value, to) or (to is int and isinstance(value, bool)):
        raise WrongValue(f"{where} is not {NAMES[to]}")
    if to is float and not math.isfinite(value):
        raise WrongValue(f"{where} is not finite")
    if to is int and abs(value) >= LARGEST:
        raise WrongValue(f"{where} is too large")
    if to is str and INVALID_TEXT.search(value):
        raise WrongValue(f"{where} is not a text")
    return value


NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}
