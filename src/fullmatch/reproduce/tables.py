"""The lines of a table as Markdown, CSV and LaTeX."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

from fullmatch.reproduce.grid import PaperTable, TableCell, facts_of
from fullmatch.reproduce.latex import to_latex
from fullmatch.reproduce.lines import Mark, Spread, TableLine
from fullmatch.reproduce.paper import STEPS
from fullmatch.storage.atomic import explained_errors, write_text

HEADINGS = (
    "data",
    "method",
    "steps",
    "folds",
    "last",
    "median of last 20",
    "best, chosen on test",
    "paper",
    "difference",
    "mark",
)
NOTES = (
    "Accuracy of the averaged model on the test images, in percent: mean ± standard deviation over "
    "folds.",
    "The median is over the last 20 evaluations. A run with fewer evaluations uses all of them, "
    "including those from early in training.",
    f"The paper's numbers are the best of {STEPS:,} steps, chosen on the test images. The "
    "difference compares best with best and means little if the numbers of steps differ.",
)
MEANINGS = {
    Mark.OTHER_CODE: "other code: the training code has changed since.",
    Mark.UNKNOWN_CODE: "unknown code: the commit is not enough to tell which code made this run.",
    Mark.OTHER_SETTINGS: "other settings: not the ones published here now, because others were "
    "requested or because the published ones have changed since.",
}

# What follows a method's name.
MEASURES = {"top1": (), "top5": ("top-5",), "balanced": ("balanced accuracy",)}
NEAR_CHANCE = 1.25  # times the accuracy of guessing, up to which a number says so


def format_line(line: TableLine) -> tuple[str, ...]:
    """One text per heading."""
    measure = MEASURES[line.measure]
    return (
        str(line.cell),
        ", ".join([line.row.name, *measure, *line.settings]),
        "-" if line.steps is None else f"{line.steps:,}",
        ",".join(map(str, line.folds)) or "-",
        format_spread(line.scores.get("last")) + (mark_chance(line) if at_chance(line) else ""),
        *(format_spread(line.scores.get(protocol)) for protocol in ("median", "best")),
        format_spread(line.published and Spread(*line.published)),
        "-" if line.difference is None else f"{line.difference:+.2f}",
        ", ".join(line.marks) or "-",
    )


def format_spread(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    deviation = "" if spread.deviation is None else f" ± {spread.deviation:.2f}"
    return f"{spread.mean:.2f}{deviation}"


def chance(cell: TableCell) -> float:
    """The accuracy of guessing among all classes, in percent, however many images each has."""
    return 100 / facts_of(cell.data).num_classes


def at_chance(line: TableLine) -> bool:
    last = line.scores.get("last")
    return (
        last is not None and line.measure != "top5" and last.mean <= NEAR_CHANCE * chance(line.cell)
    )


def mark_chance(line: TableLine) -> str:
    return f" (chance: {chance(line.cell):.2f})"


def make_notes(lines: Sequence[TableLine]) -> list[str]:
    """What a reader of these lines must know."""
    return [*NOTES, *special_notes(lines)]


def special_notes(lines: Sequence[TableLine]) -> list[str]:
    """What is true of some tables only."""
    notes: list[str] = []
    if any(line.cell.data == "svhn-noextra" for line in lines):
        notes.append(
            "svhn-noextra is SVHN without its extra images, so the paper's numbers do not apply to "
            "it."
        )
    guessed = dict.fromkeys(line.cell for line in lines if at_chance(line))
    for cell in guessed:
        methods = ", ".join(
            dict.fromkeys(line.row.name for line in lines if line.cell == cell and at_chance(line))
        )
        notes.append(
            f"Guessing among the classes of {cell} is right for {chance(cell):.2f} %. Not better: "
            f"{methods}."
        )
    if any(line.measure == "balanced" for line in lines):
        notes.append("Balanced accuracy, the mean of the classes' recalls, is of the last step.")
    if len({line.steps for line in lines if line.steps}) > 1:
        notes.append("Runs with different numbers of steps are on separate lines.")
    if any(line.settings for line in lines):
        notes.append("A setting after a method's name differs from the published one.")
    marks = {mark for line in lines for mark in line.marks}
    return notes + [meaning for mark, meaning in MEANINGS.items() if mark in marks]


def to_columns(lines: Sequence[TableLine]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows; the column of marks is left out if nothing is marked."""
    headings = HEADINGS if any(line.marks for line in lines) else HEADINGS[:-1]
    return headings, [format_line(line)[: len(headings)] for line in lines]


def to_markdown(lines: Sequence[TableLine]) -> str:
    return "\n".join(markdown_rows(*to_columns(lines))) + "\n"


def markdown_rows(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    rule = ["---"] * len(headings)
    return [f"| {' | '.join(row)} |" for row in (headings, rule, *body)]


def to_csv(lines: Sequence[TableLine]) -> str:
    """Plain numbers, with means and deviations in separate columns."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    spreads = ("last", "median", "best", "paper")
    means = [f"{name}_{part}" for name in spreads for part in ("mean", "deviation")]
    writer.writerow(
        ["cell", "method", "measure", "steps", "folds", *means, "difference", "marks", "settings"]
    )
    for line in lines:
        pairs: list[Sequence[float | None]] = [
            line.scores.get(name, (None, None)) for name in spreads[:3]
        ]
        pairs.append(line.published or (None, None))
        numbers = [value for pair in pairs for value in pair] + [line.difference]
        writer.writerow(
            [
                str(line.cell),
                line.row.name,
                line.measure,
                line.steps or "",
                " ".join(map(str, line.folds)),
                *("" if value is None else round(value, 4) for value in numbers),
                ";".join(line.marks),
                ";".join(line.settings),
            ]
        )
    return text.getvalue()


def write_table(
    folder: Path, table: PaperTable, lines: Sequence[TableLine], protocol: str = "best"
) -> list[Path]:
    """Write all three forms; a cell of the LaTeX table has room for one protocol."""
    notes = "".join(f"- {note}\n" for note in make_notes(lines))
    texts = {
        "md": f"{to_markdown(lines)}\n{notes}",
        "csv": to_csv(lines),
        "tex": to_latex(table, lines, special_notes(lines), protocol),
    }
    with explained_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"table{table.number}.{ending}" for ending in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_text(path, text)
    return paths
