"""Types of parameters that several commands take."""

from typing import Annotated, Any

from cyclopts import Parameter


def parse_integer(_: Any, tokens: Any) -> int:
    """An integer; the default converter would round 1.5 to 2."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is not an integer") from None


def parse_count(_: Any, tokens: Any) -> int:
    count = parse_integer(_, tokens)
    if count < 1:
        raise ValueError(f"{count} is too small, expected 1 or more")
    return count


Settings = Annotated[list[str] | None, Parameter(name="--set", negative=())]
Integer = Annotated[int | None, Parameter(converter=parse_integer)]
Count = Annotated[int, Parameter(converter=parse_count)]
