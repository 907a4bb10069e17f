"""What a listing says of an algorithm."""

from typing import NamedTuple


class About(NamedTuple):
    paper: str
    year: int
    idea: str  # in about six words
    memory: str = "none"  # what it keeps between steps
