"""Dataclasses from tables and back: TOML, dotted overrides, and errors that name their place."""

import dataclasses
import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from fullmatch.errors import UserError, did_you_mean

T = TypeVar("T")
Table = dict[str, Any]


class Text(str):
    """A value as typed on the command line: its type is decided by the field it goes to."""


def to_table(value: Any) -> Any:
    """Plain containers for TOML and JSON; None is left out, since TOML has none."""
    if dataclasses.is_dataclass(value):
        pairs = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {name: to_table(part) for name, part in pairs if part is not None}
    return list(value) if isinstance(value, tuple) else value


def from_table(cls: type[T], table: Mapping[str, Any], where: str = "") -> T:
    """A dataclass from a table; a wrong key or type is an error that names its place."""
    hints = get_type_hints(cls)
    known = {f.name for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    for key in table:
        if key not in known:
            raise UserError(f"unknown setting {where + key!r}{did_you_mean(key, known)}")
    return cls(**{key: typed(value, hints[key], where + key) for key, value in table.items()})


def typed(value: Any, to: Any, where: str) -> Any:
    """The value as the type of its field."""
    if to is Any:
        return value
    if get_origin(to) in (Union, UnionType):
        if value is None or (isinstance(value, Text) and value.lower() == "none"):
            return None
        (to,) = (option for option in get_args(to) if option is not NoneType)
    if dataclasses.is_dataclass(to) and isinstance(to, type):
        if isinstance(value, Text) and value.lower() == "default":
            return to()
        return from_table(to, expected(value, Mapping, "a table", where), f"{where}.")
    if get_origin(to) is Literal:
        if value not in get_args(to):
            choices = ", ".join(map(str, get_args(to)))
            hint = did_you_mean(str(value), map(str, get_args(to)))
            raise UserError(f"{where} is {value!r}, expected one of {choices}{hint}")
        return str(value)
    if get_origin(to) is tuple:
        values = (
            value.split(",") if isinstance(value, Text) else expected(value, list, "a list", where)
        )
        return tuple(typed(retyped(value, v), get_args(to)[0], where) for v in values)
    return scalar(value, to, where)


def retyped(whole: Any, part: Any) -> Any:
    return Text(part) if isinstance(whole, Text) else part


def scalar(value: Any, to: Any, where: str) -> Any:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    if isinstance(value, Text) and to is not str:
        try:
            value = tomllib.loads(f"x = {value}")["x"]
        except tomllib.TOMLDecodeError:
            raise UserError(f"{where} is {str(value)!r}, expected {words[to]}") from None
    if to is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if to is int and isinstance(value, bool):
        raise UserError(f"{where} is {value!r}, expected {words[to]}")
    found = expected(value, to, words[to], where)
    if to is float and not math.isfinite(found):
        raise UserError(f"{where} is {found}, expected a finite number")
    return str(found) if to is str else found


def expected(value: Any, to: Any, words: str, where: str) -> Any:
    if not isinstance(value, to):
        raise UserError(f"{where} is {value!r}, expected {words}")
    return value


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> Table:
    """`over` laid on `base`, table by table."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        nested = isinstance(value, Mapping) and isinstance(below, Mapping)
        result[key] = merged(below, value) if nested else value  # type: ignore[arg-type]
    return result


def overrides(assignments: Iterable[str]) -> Table:
    """A table from `a.b=c` texts."""
    table: Table = {}
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        if not equals or not path or "\n" in value.strip():
            raise UserError(
                f"--set {assignment!r}: expected a.b=value on one line, such as training.steps=1000"
            )
        *parents, last = path.strip().split(".")
        place = table
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise UserError(f"--set {assignment!r}: {parent!r} was set to a value before")
        place[last] = Text(value.strip())
    return table


def read_toml(path: Path) -> Table:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            f"cannot read the config {path}: {error.strerror}; check its path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"the config {path} is not TOML: {error}") from None
