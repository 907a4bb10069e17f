"""The numbers printed in the paper, as data."""

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

STEPS = 2**20  # of every run in the paper


class PaperNumber(NamedTuple):
    """A number of the paper, in percent: the best of a run, chosen on the test images."""

    mean: float
    deviation: float | None  # over three folds; None if the paper has one run


class PaperKey(NamedTuple):
    """Where a number is printed: its table, the row's name, the cell and the measure."""

    table: int
    row: str
    cell: str
    measure: str = "top1"


@cache
def paper_numbers() -> dict[PaperKey, PaperNumber]:
    """Every number of Tables 1 to 4, without the dashes."""
    numbers: dict[PaperKey, PaperNumber] = {}
    text = (files("fullmatch.reproduce") / "paper.csv").read_text(encoding="utf-8")
    for line in csv.DictReader(text.splitlines()):
        if not line["mean"]:
            continue
        flags = dict(flag.partition("=")[::2] for flag in line["flags"].split(";"))
        if "commented_out_in_source" in flags:
            continue  # not in the printed table
        row = line["method"]
        if "alpha" in flags:
            row = weights_name(float(flags["alpha"]), float(flags["beta"]))
        key = PaperKey(
            int(flags["table"]),
            row,
            f"{line['dataset']}-{line['labels']}",
            flags.get("metric", "top1"),
        )
        deviation = float(line["std"]) if line["std"] else None
        numbers[key] = PaperNumber(float(line["mean"]), deviation)
    return numbers


def weights_name(alpha: float, beta: float) -> str:
    """The name of a row of Table 4."""
    return f"alpha {alpha:g}, beta {beta:g}"
