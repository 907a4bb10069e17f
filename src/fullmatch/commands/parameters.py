"""Kinds of parameters that several commands take."""

from typing import Annotated, Any

from cyclopts import Parameter


def whole(_: Any, tokens: Any) -> int:
    """A whole number; left to itself, the parser would round 1.5 to 2."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is no whole number") from None


Settings = Annotated[list[str] | None, Parameter(name="--set", negative=())]
Whole = Annotated[int | None, Parameter(converter=whole)]
