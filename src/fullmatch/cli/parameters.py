"""Kinds of parameters that several commands take."""

from typing import Annotated, Any

from cyclopts import Parameter


def whole(_: Any, tokens: Any) -> int:
    """A whole number; left to itself, the parser would round 1.5 to 2."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is no whole number") from None


def above_nothing(_: Any, tokens: Any) -> int:
    if (found := whole(_, tokens)) < 1:
        raise ValueError(f"{found} is too few, expected 1 or more")
    return found


Settings = Annotated[list[str] | None, Parameter(name="--set", negative=())]
Whole = Annotated[int | None, Parameter(converter=whole)]
Count = Annotated[int, Parameter(converter=above_nothing)]
