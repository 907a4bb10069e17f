"""Cells of CSV files that a spreadsheet shows as text, whatever a file or a class is called."""

import os

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes what begins with these
QUOTE = "'"  # before a cell, it says that what follows is text


def neutralize_cell(text: str) -> str:
    """Text that no spreadsheet takes for a formula; `restore_cell` gives it back."""
    return QUOTE + text if is_formula(text) else text


def restore_cell(text: str) -> str:
    """The text that `neutralize_cell` was given."""
    is_quoted = text.startswith(QUOTE) and is_formula(text[len(QUOTE) :])
    return text[len(QUOTE) :] if is_quoted else text


def is_formula(text: str) -> bool:
    return text.lstrip(QUOTE).startswith(FORMULA)


def neutralize_path(path: str) -> str:
    """The same file under a name that no spreadsheet takes for a formula."""
    return os.path.join(os.curdir, path) if is_formula(path) else path
