"""Dataclasses as JSON: written whole, and read with every type checked."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from fullmatch.storage.json_files import WrongValue, from_json, read_json, to_json, write_json


class Color(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    size: int


@dataclass(frozen=True)
class Outer:
    name: str
    rate: float
    pair: tuple[int, float]
    color: Color
    inner: Inner
    limit: int | None = None
    flag: bool = False
    rows: tuple[tuple[int, ...], ...] = ()
    inners: dict[str, Inner] = field(default_factory=dict)
    extra: Any = None


FULL = Outer(
    name="é",
    rate=0.1,
    pair=(1, 2.5),
    color=Color.RED,
    inner=Inner(3),
    limit=4,
    flag=True,
    rows=((1, 2), (3,)),
    inners={"a": Inner(5)},
    extra=[1, {"b": None}],
)
TABLE: dict[str, Any] = to_json(FULL)


def test_round_trip(tmp_path: Path) -> None:
    write_json(tmp_path / "file.json", FULL)
    assert from_json(Outer, read_json(tmp_path / "file.json")) == FULL
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_defaults_and_unknown_keys() -> None:
    required = {name: TABLE[name] for name in ("name", "rate", "pair", "color", "inner")}
    outer = from_json(Outer, required | {"of a later version": 1})
    assert (outer.limit, outer.flag, outer.rows, outer.inners) == (None, False, (), {})


def test_integers_are_numbers() -> None:
    rate = from_json(Outer, TABLE | {"rate": 3}).rate
    assert rate == 3.0
    assert isinstance(rate, float)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 5}, "name is not a text"),
        ({"rate": "0.1"}, "rate is not a number"),
        ({"rate": True}, "rate is not a number"),
        ({"rate": None}, "rate is not a number"),
        ({"rate": float("nan")}, "rate is not finite"),
        ({"rate": float("inf")}, "rate is not finite"),
        ({"rate": 10**400}, "rate is not finite"),
        ({"limit": 1.5}, "limit is not an integer"),
        ({"limit": False}, "limit is not an integer"),
        ({"flag": 1}, "flag is not true or false"),
        ({"pair": [1]}, "pair has 1 entries, expected 2"),
        ({"pair": {"0": 1}}, "pair is not a list"),
        ({"rows": [[1], 2]}, "rows is not a list"),
        ({"rows": [[1], ["2"]]}, "rows is not an integer"),
        ({"color": "blue"}, "color is 'blue'"),
        ({"color": ["red"]}, r"color is \['red'\]"),
        ({"inner": [3]}, "inner is not a table"),
        ({"inner": {}}, "inner.size is missing"),
        ({"inner": {"size": "3"}}, "inner.size is not an integer"),
        ({"inners": []}, "inners is not a table"),
        ({"inners": {"a": {"size": None}}}, "inners.a.size is not an integer"),
    ],
)
def test_the_first_wrong_value_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongValue, match=f"^{message}$"):
        from_json(Outer, TABLE | change)


def test_a_missing_key_is_named() -> None:
    with pytest.raises(WrongValue, match=r"^pair is missing$"):
        from_json(Outer, {name: value for name, value in TABLE.items() if name != "pair"})
    with pytest.raises(WrongValue, match=r"^it is not a table$"):
        from_json(Outer, [])


@pytest.mark.parametrize("text", ["[]", "null", "3", "", '{"a"', "\ufeff{}"])
def test_only_tables_are_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "file.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"^(not a table|not JSON)$"):
        read_json(tmp_path / "file.json")


def test_a_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
