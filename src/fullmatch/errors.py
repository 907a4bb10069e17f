"""Errors that a user can fix, and helpers for their wording; imports nothing heavy."""

import difflib
from collections.abc import Iterable, Sized


class UserError(Exception):
    """One line that says what is wrong and what to do next; the command line exits with 2."""


class NonFiniteLoss(UserError):
    """The loss of a step became NaN or infinite; `details` continue the message."""

    def __init__(self, step: int, details: str = "") -> None:
        super().__init__(step, details)  # the arguments themselves, so that it can be pickled
        self.step, self.details = step, details

    def __str__(self) -> str:
        return f"the loss became NaN at step {self.step}{self.details}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'; did you mean X?', or '' if no known word resembles this one."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def many(things: int | Sized, one: str, more: str | None = None) -> str:
    """'1 picture', '2 pictures'."""
    count = things if isinstance(things, int) else len(things)
    return f"{count:,} {one if count == 1 else more or one + 's'}"
