"""The numbers that the paper prints, as data."""

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

STEPS = 2**20  # of every run in the paper


class Published(NamedTuple):
    """A number of the paper, in percent; it is the best of a run, chosen on the test images."""

    mean: float
    deviation: float | None  # over three folds; None where the paper has one run


class Key(NamedTuple):
    """Where a number stands: its table, the row's name, the cell, and the measure."""

    table: int
    row: str
    cell: str
    measure: str = "top1"


@cache
def published() -> dict[Key, Published]:
    """Every number of Tables 1 to 4; dashes of the paper are left out."""
    found: dict[Key, Published] = {}
    text = (files("fullmatch.reproduce") / "paper.csv").read_text(encoding="utf-8")
    for line in csv.DictReader(text.splitlines()):
        if not line["mean"]:
            continue
        flags = dict(flag.partition("=")[::2] for flag in line["flags"].split(";"))
        if "commented_out_in_source" in flags:
            continue  # no part of the printed table
        row = line["method"]
        if "alpha" in flags:
            row = weights(float(flags["alpha"]), float(flags["beta"]))
        key = Key(
            int(flags["table"]),
            row,
            f"{line['dataset']}-{line['labels']}",
            flags.get("metric", "top1"),
        )
        deviation = float(line["std"]) if line["std"] else None
        found[key] = Published(float(line["mean"]), deviation)
    return found


def weights(alpha: float, beta: float) -> str:
    """The name of a row of Table 4."""
    return f"alpha {alpha:g}, beta {beta:g}"
