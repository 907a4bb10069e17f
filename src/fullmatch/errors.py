"""What a user can mend, said in one line; imports nothing, so that help stays quick."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """One line that says what is wrong and what to do next; the command line exits with 2."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'; did you mean X?', or nothing when no known word resembles this one."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
