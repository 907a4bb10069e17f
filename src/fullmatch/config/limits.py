"""Which numbers a setting may be: types for the fields of specs and configs, and their check.

A field says it with its type, `threshold: Share = 0.95`, and needs nothing else: whatever becomes
part of an `ExperimentConfig` is checked there.
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
    """From `least` to `most`, both included unless `above` or `below` leaves one out."""

    least: float = -math.inf
    most: float = math.inf
    above: bool = False  # more than `least`
    below: bool = False  # less than `most`

    def hold(self, value: float) -> bool:
        low = self.least < value if self.above else self.least <= value
        high = value < self.most if self.below else value <= self.most
        return low and high and -math.inf < value < math.inf

    def words(self, value: float) -> str:
        """What was expected instead of this value."""
        if not -math.inf < value < math.inf:
            return "a finite number"
        if self.most == math.inf:
            return f"more than {self.least}" if self.above else f"{self.least} or more"
        return f"{self.least} to {'less than ' if self.below else ''}{self.most}"


Number = Annotated[float, Limits()]
Amount = Annotated[float, Limits(0)]  # a weight of a loss, a deviation: 0 leaves it out
Positive = Annotated[float, Limits(0, above=True)]  # something is divided by it
Share = Annotated[float, Limits(0, 1)]  # a threshold, a momentum, a share of the training
Part = Annotated[float, Limits(0, 1, below=True)]  # a share that leaves something over
Cosine = Annotated[float, Limits(-1, 1)]
Count = Annotated[int, Limits(1)]
Natural = Annotated[int, Limits(0)]
Seed = Annotated[int, Limits(0, 2**63 - 1)]


def check(settings: object, where: str = "") -> None:
    """Refuse a number outside the limits of its field, in a dataclass and in those inside it."""
    if not dataclasses.is_dataclass(settings) or isinstance(settings, type):
        return
    limits = limits_of(type(settings))
    for field in dataclasses.fields(settings):
        value, place = getattr(settings, field.name), where + field.name
        check(value, f"{place}.")
        found = limits.get(field.name)
        if found is not None and value is not None and not found.hold(value):
            raise UserError(f"{place} is {value}, expected {found.words(value)}")


@functools.cache
def limits_of(cls: type) -> dict[str, Limits]:
    """The limits of each field that has some; those of X where the field is `X | None`."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except NameError:  # annotations kept as texts, of names that only a type checker imports
        return {}
    return {
        name: mark
        for name, hint in hints.items()
        for mark in marks(hint)
        if isinstance(mark, Limits)
    }


def marks(hint: Any) -> tuple[Any, ...]:
    """What is annotated to a type, or to the members of a union."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(mark for option in get_args(hint) for mark in marks(option))
    return getattr(hint, "__metadata__", ())
