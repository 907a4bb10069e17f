"""What a sweep varies: lists of values and ranges, from text as in `--set`."""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fullmatch.errors import UserError

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})")
DECADE = 10.0  # a range whose ends differ by this factor is searched on a log scale
MOST_RUNS = 10_000  # of a grid; more is a typo
OWN_FLAGS = {
    "seed": "list seeds with --seeds",
    "data.name": "a sweep compares settings on one data set",
}


@dataclass(frozen=True)
class ValueList:
    """A setting and the values to try, as they would be written in `--set`."""

    name: str
    values: tuple[str, ...]

    @property
    def varies(self) -> bool:
        return len(self.values) > 1


@dataclass(frozen=True)
class ValueRange:
    """A numeric setting and the range to search."""

    name: str
    low: str
    high: str

    @property
    def varies(self) -> bool:
        return True

    @property
    def values(self) -> tuple[str, ...]:
        """Both ends."""
        return self.low, self.high

    @property
    def log(self) -> bool:
        """Whether it is searched on a log scale: it is positive and spans a decade or more."""
        low, high = float(self.low), float(self.high)
        return low > 0 and high / low >= DECADE


Choice = ValueList | ValueRange


@dataclass(frozen=True)
class SweepPoint:
    """One combination of values, with its number in the sweep."""

    number: int
    values: tuple[tuple[str, str], ...]  # settings and their values

    @property
    def assignments(self) -> list[str]:
        """As in `--set`."""
        return [f"{name}={value}" for name, value in self.values]


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep: a combination of values with one seed."""

    point: SweepPoint
    seed: int

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.point.number:03d}-seed{self.seed}"

    @property
    def title(self) -> str:
        return ", ".join([*self.point.assignments, f"seed {self.seed}"])


def parse_choices(settings: Sequence[str]) -> tuple[Choice, ...]:
    """Lists and ranges from `a.b=1,2,3` and `a.b=0.1..10`; every setting once."""
    choices = tuple(map(parse_choice, settings))
    names = [choice.name for choice in choices]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--set {name} is given twice; list all of its values in one --set")
        if name in OWN_FLAGS:
            raise UserError(f"--set {name} cannot be swept: {OWN_FLAGS[name]}")
    return choices


def parse_choice(text: str) -> Choice:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise UserError(f"--set {text!r}: expected a.b=VALUES, such as optimizer.rate=0.01,0.03")
    if match := RANGE.fullmatch(value):
        if not float(match[1]) < float(match[2]):
            raise UserError(f"--set {text}: the range is empty; write the smaller number first")
        return ValueRange(name, match[1], match[2])
    values = split_values(value)
    if not values or not all(values):
        raise UserError(f"--set {text}: a value is empty; expected a list such as {name}=1,2")
    return ValueList(name, tuple(dict.fromkeys(values)))


def split_values(text: str) -> list[str]:
    """Values between commas; a list in brackets is one value."""
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text)] if text else []


def list_grid(choices: Sequence[Choice]) -> list[SweepPoint]:
    """Every combination of the values, the last setting changing first."""
    for choice in choices:
        if isinstance(choice, ValueRange):
            raise UserError(
                f"{choice.name}={choice.low}..{choice.high} is a range, which is searched: add "
                "--trials N, or list values such as 0.01,0.03"
            )
    lists = [
        [(choice.name, value) for value in choice.values]
        for choice in choices
        if isinstance(choice, ValueList)
    ]
    # One more than allowed is enough to know.
    combinations = itertools.islice(itertools.product(*lists), MOST_RUNS + 1)
    return [SweepPoint(number, values) for number, values in enumerate(combinations)]


def list_corners(choices: Sequence[Choice]) -> Iterator[SweepPoint]:
    """Points that together have every value and both ends of every range, to check them."""
    first = [choice.values[0] for choice in choices]
    for at, choice in enumerate(choices):
        for value in choice.values:
            chosen = [*first[:at], value, *first[at + 1 :]]
            pairs = zip((choice.name for choice in choices), chosen, strict=True)
            yield SweepPoint(0, tuple(pairs))
