"""Limits of numeric settings: types for the fields of specs and configs, and their check.

A field declares its limits by its type, as in `threshold: Share = 0.95`. Everything that is part of
an `ExperimentConfig` is checked when the config is created.
"""

import dataclasses
import functools
import math
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from fullmatch.errors import UserError


@dataclass(frozen=True)
class Limits:
    """From `low` to `high`; both are included unless `above_low` or `below_high` is set."""

    low: float = -math.inf
    high: float = math.inf
    above_low: bool = False
    below_high: bool = False

    def contain(self, value: float) -> bool:
        low = self.low < value if self.above_low else self.low <= value
        high = value < self.high if self.below_high else value <= self.high
        return low and high and -math.inf < value < math.inf

    def describe(self, value: float) -> str:
        """What was expected instead of this value."""
        if not -math.inf < value < math.inf:
            return "a finite number"
        if self.high == math.inf:
            return f"more than {self.low}" if self.above_low else f"{self.low} or more"
        return f"{self.low} to {'less than ' if self.below_high else ''}{self.high}"


Number = Annotated[float, Limits()]
Amount = Annotated[float, Limits(0)]  # such as the weight of a loss; 0 turns it off
Positive = Annotated[float, Limits(0, above_low=True)]  # such as a divisor
Share = Annotated[float, Limits(0, 1)]  # such as a threshold, a momentum, a share of the training
ShareBelowOne = Annotated[float, Limits(0, 1, below_high=True)]  # such as a dropout rate
Cosine = Annotated[float, Limits(-1, 1)]
Count = Annotated[int, Limits(1)]
Side = Annotated[int, Limits(1, 4096)]  # of pictures, in pixels
Natural = Annotated[int, Limits(0)]
Seed = Annotated[int, Limits(0, 2**63 - 1)]


def check_limits(settings: object, where: str = "") -> None:
    """Raise a `UserError` for a number outside its limits, in a dataclass or in its fields."""
    if not dataclasses.is_dataclass(settings) or isinstance(settings, type):
        return
    limits = limits_of(type(settings))
    for field in dataclasses.fields(settings):
        value, name = getattr(settings, field.name), where + field.name
        check_limits(value, f"{name}.")
        limit = limits.get(field.name)
        for number in value if isinstance(value, tuple) else (value,):
            if limit is not None and number is not None and not limit.contain(number):
                raise UserError(f"{name} is {number}, expected {limit.describe(number)}")


@functools.cache
def limits_of(cls: type) -> dict[str, Limits]:
    """The limits of the fields that have any; for `X | None` and tuples of X, those of X."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except NameError:  # string annotations with names that only a type checker imports
        return {}
    return {
        name: item
        for name, hint in hints.items()
        for item in annotated_items(hint)
        if isinstance(item, Limits)
    }


def annotated_items(hint: Any) -> tuple[Any, ...]:
    """The metadata of an `Annotated` type, or of the members of a union or tuple."""
    if get_origin(hint) in (Union, UnionType, tuple):
        return tuple(item for option in get_args(hint) for item in annotated_items(option))
    return hint.__metadata__ if get_origin(hint) is Annotated else ()
