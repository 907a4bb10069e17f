"""Values, ranges and grids from text."""

import pytest

from fullmatch.errors import UserError
from fullmatch.sweeps.space import (
    SweepPoint,
    SweepRun,
    ValueList,
    ValueRange,
    list_corners,
    list_grid,
    parse_choices,
    split_values,
)


def test_lists_and_ranges() -> None:
    assert parse_choices(["optimizer.rate=0.01, 0.03,0.01", "training.batch=8..64"]) == (
        ValueList("optimizer.rate", ("0.01", "0.03")),
        ValueRange("training.batch", "8", "64"),
    )
    assert split_values("[160],[160,224]") == ["[160]", "[160,224]"]
    assert parse_choices(["data.root=../data"]) == (ValueList("data.root", ("../data",)),)


@pytest.mark.parametrize(
    ("text", "log"),
    [
        ("0.001..0.1", True),
        ("1e-4..1e-3", True),
        ("1..10", True),
        ("1..9.9", False),
        ("0..1", False),
        ("-10..100", False),
        (".5....9", None),
    ],
)
def test_ranges_over_a_decade_are_on_a_log_scale(text: str, log: bool | None) -> None:
    (choice,) = parse_choices([f"a.b={text}"])
    assert (choice.log if isinstance(choice, ValueRange) else None) == log


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["optimizer.rate"], "expected a.b=VALUES"),
        (["=1,2"], "expected a.b=VALUES"),
        (["optimizer.rate="], "a value is empty"),
        (["optimizer.rate=0.1,,0.2"], "a value is empty"),
        (["optimizer.rate=0.1..0.01"], "the smaller number first"),
        (["optimizer.rate=1..1"], "the smaller number first"),
        (["optimizer.rate=1", "optimizer.rate=2"], "given twice"),
        (["seed=0,1"], "list seeds with --seeds"),
        (["data.name=digits,svhn"], "on one data set"),
    ],
)
def test_mistakes(settings: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_choices(settings)


def test_a_grid_has_every_combination() -> None:
    points = list_grid(parse_choices(["a=1,2", "b=x,y"]))
    assert [point.assignments for point in points] == [
        ["a=1", "b=x"],
        ["a=1", "b=y"],
        ["a=2", "b=x"],
        ["a=2", "b=y"],
    ]
    assert [point.number for point in points] == [0, 1, 2, 3]
    assert list_grid(()) == [SweepPoint(0, ())]
    with pytest.raises(UserError, match=r"a=1..2 is a range, .*add --trials N"):
        list_grid(parse_choices(["a=1..2"]))


def test_corners_have_every_value() -> None:
    corners = list(list_corners(parse_choices(["a=1,2,3", "b=4..5"])))
    assert [dict(point.values) for point in corners] == [
        {"a": "1", "b": "4"},
        {"a": "2", "b": "4"},
        {"a": "3", "b": "4"},
        {"a": "1", "b": "4"},
        {"a": "1", "b": "5"},
    ]


def test_names_of_runs() -> None:
    run = SweepRun(SweepPoint(7, (("a", "1"),)), 3)
    assert (run.name, run.title) == ("007-seed3", "a=1, seed 3")
