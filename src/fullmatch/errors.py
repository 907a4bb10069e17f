"""What a user can mend, said in one line, and words for it; nothing heavy is imported."""

import difflib
from collections.abc import Iterable, Sized


class UserError(Exception):
    """One line that says what is wrong and what to do next; the command line exits with 2."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'; did you mean X?', or nothing when no known word resembles this one."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def many(things: int | Sized, one: str, more: str | None = None) -> str:
    """'1 picture', '2 pictures'."""
    count = things if isinstance(things, int) else len(things)
    return f"{count:,} {one if count == 1 else more or one + 's'}"
