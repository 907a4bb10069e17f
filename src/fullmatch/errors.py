"""Errors that a user can fix, and helpers for their wording; imports nothing heavy."""

import difflib
import re
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


# Characters that move the cursor, end the line, turn the direction of text, or are half of one.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_controls(text: str) -> str:
    """Text that only shows itself: a name from someone else cannot control the terminal."""
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'; did you mean X?', or '' if no known word resembles this one."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def pluralize(things: int | Sized, one: str, more: str | None = None) -> str:
    """'1 picture', '2 pictures'."""
    count = things if isinstance(things, int) else len(things)
    return f"{count:,} {one if count == 1 else more or one + 's'}"
