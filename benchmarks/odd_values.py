"""Texts, numbers and other values that nobody expects in a file."""

import random
from typing import Any

ODD_TEXTS = (
    "",
    " ",
    "\x00",
    "\x1b[31mred\x07",
    "two\nlines",
    "=1+1",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "nan",
    "-1",
    "\ud800",
    "\udcff",
    "a" * 5000,
    "ä/\\'\"`$(touch x)",
)
ODD_NUMBERS = (0, -1, 1, 2**31, 2**63, 10**400, 1.5, -0.0, 1e308, float("nan"), float("inf"))


def odd_value(rng: random.Random) -> Any:
    deep: Any = 1
    for _ in range(rng.choice((3, 40, 900))):
        deep = [deep] if rng.random() < 0.5 else {"a": deep}
    choices: tuple[Any, ...] = (None, True, [], {}, [[]], [None], {"a": 1}, deep, [0] * 2000)
    return rng.choice((*choices, *ODD_TEXTS, *ODD_NUMBERS))
