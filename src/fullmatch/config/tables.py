"""Dataclasses to and from tables: TOML, dotted overrides, and errors that name the setting."""

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fullmatch.errors import UserError, did_you_mean
from fullmatch.files.reading import SETTINGS_LIMIT, UnusableFile, parse_toml, read_bounded_text

T = TypeVar("T")
SettingsTable = dict[str, Any]
LARGEST = 2**63  # of integers: larger ones do not fit into a float or a tensor
TYPE_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


# Of a list on the command line: in double quotes, in single ones, or without any.
LIST_ITEM = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^,]*[^,\s]))\s*(?:,|$)""")


class Text(str):
    """A value from the command line; the field that it is for decides its type."""


def to_table(value: Any) -> Any:
    """Plain containers for TOML and JSON; None is left out, since TOML has no null."""
    if dataclasses.is_dataclass(value):
        pairs = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {name: to_table(part) for name, part in pairs if part is not None}
    return list(value) if isinstance(value, tuple) else value


def from_table(cls: type[T], table: Mapping[str, Any], where: str = "") -> T:
    """A dataclass from a table; a wrong key or type is an error that names the setting."""
    hints = get_type_hints(cls)
    known = {f.name for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for key in table:
        if key not in known:
            raise UserError(f"unknown setting {where + key!r}{did_you_mean(key, known)}")
    return cls(**{key: convert(value, hints[key], where + key) for key, value in table.items()})


def convert(value: Any, to: Any, where: str) -> Any:
    """Convert the value to the type of its field."""
    if to is Any:
        return value
    if get_origin(to) in (Union, UnionType):
        if value is None or (isinstance(value, Text) and value.lower() == "none"):
            return None
        (to,) = (option for option in get_args(to) if option is not NoneType)
    if dataclasses.is_dataclass(to) and isinstance(to, type):
        if isinstance(value, Text) and value.lower() == "default":
            return to()
        return from_table(to, require_type(value, Mapping, "a table", where), f"{where}.")
    if get_origin(to) is Literal:
        if value not in get_args(to):
            choices = ", ".join(map(str, get_args(to)))
            hint = did_you_mean(str(value), map(str, get_args(to)))
            raise UserError(f"{where} is {value!r}, expected one of {choices}{hint}")
        return str(value)
    if get_origin(to) is tuple:
        if isinstance(value, Text):
            values: list[Any] = split_list(value)
        else:
            values = require_type(value, list, "a list", where)
        return tuple(convert(part, get_args(to)[0], where) for part in values)
    return convert_scalar(value, to, where)


def split_list(text: str) -> list[Any]:
    """The items of `[a, b]` or `a, b`; quotes around one are dropped, and may hold a comma."""
    items = LIST_ITEM.findall(text.strip().removeprefix("[").removesuffix("]"))
    return [Text("".join(item)) for item in items]


def convert_scalar(value: Any, to: Any, where: str) -> Any:
    if isinstance(value, Text) and to is not str:
        try:
            value = parse_toml(f"x = {value}")["x"]
        except UnusableFile:
            raise UserError(f"{where} is {str(value)!r}, expected {TYPE_NAMES[to]}") from None
    if to is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < LARGEST else math.inf
    if to is int and isinstance(value, bool):
        raise UserError(f"{where} is {value!r}, expected {TYPE_NAMES[to]}")
    value = require_type(value, to, TYPE_NAMES[to], where)
    if to is int and abs(value) >= LARGEST:
        raise UserError(f"{where} is too large, expected less than 2**63")
    if to is float and not math.isfinite(value):
        raise UserError(f"{where} is {value}, expected a finite number")
    return str(value) if to is str else value


def require_type(value: Any, to: Any, type_name: str, where: str) -> Any:
    if not isinstance(value, to):
        raise UserError(f"{where} is {value!r}, expected {type_name}")
    return value


def merge_tables(base: Mapping[str, Any], changes: Mapping[str, Any]) -> SettingsTable:
    """`base` with the values of `changes`, merged table by table."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        nested = isinstance(value, Mapping) and isinstance(old, Mapping)
        result[key] = merge_tables(old, value) if nested else value  # type: ignore[arg-type]
    return result


def parse_overrides(assignments: Iterable[str]) -> SettingsTable:
    """A table from `a.b=c` strings."""
    table: SettingsTable = {}
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        if not equals or not path or "\n" in value.strip():
            raise UserError(
                f"--set {assignment!r}: expected a.b=value on one line, such as training.steps=1000"
            )
        *parents, last = path.strip().split(".")
        section = table
        for parent in parents:
            section = section.setdefault(parent, {})
            if not isinstance(section, dict):
                raise UserError(
                    f"--set {assignment!r}: {parent!r} already has a value; remove one of the two"
                )
        section[last] = Text(value.strip())
    return table


def read_toml(path: Path) -> SettingsTable:
    """The settings in a TOML file."""
    try:
        return parse_toml(read_bounded_text(path, SETTINGS_LIMIT))
    except OSError as error:
        raise UserError(
            f"cannot read the config {path}: {error.strerror}; check its path"
        ) from None
    except UnusableFile as error:
        raise UserError(f"the config {path} is {error}; fix it") from None
