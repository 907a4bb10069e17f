"""The lines of a table as text for people, Markdown, CSV and LaTeX."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

from fullmatch.errors import UserError
from fullmatch.reproduce.grid import Table
from fullmatch.reproduce.lines import Line, Spread
from fullmatch.reproduce.paper import STEPS
from fullmatch.storage.atomic import aside

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
    "Accuracy of the averaged model on the test images, in percent: mean ± deviation over folds.",
    "The median is over the last 20 evaluations, or over all of them where there are fewer: in a "
    "short run it reaches back to where training was young.",
    f"The paper's numbers are the best of {STEPS:,} steps, chosen on the test images; the "
    "difference is between bests, and says little where the steps differ.",
)

# A setting may be a path, with anything in it.
TEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "%_&#${}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"±": r"$\pm$"}
)


def cells_of(line: Line) -> tuple[str, ...]:
    """A line as texts, one a heading."""
    measure = () if line.measure == "top1" else ("top-5",)
    return (
        str(line.cell),
        ", ".join([line.row.name, *measure, *line.settings]),
        "-" if line.steps is None else f"{line.steps:,}",
        ",".join(map(str, line.folds)) or "-",
        *(written(line.scores.get(protocol)) for protocol in ("last", "median", "best")),
        written(line.published and Spread(*line.published)),
        "-" if line.difference is None else f"{line.difference:+.2f}",
        ", ".join(line.marks) or "-",
    )


def written(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    around = "" if spread.deviation is None else f" ± {spread.deviation:.2f}"
    return f"{spread.mean:.2f}{around}"


def notes(lines: Sequence[Line]) -> list[str]:
    """What a reader of these lines must know."""
    found = list(NOTES)
    if any(line.cell.data == "svhn-noextra" for line in lines):
        found.append(
            "svhn-noextra is SVHN without its extra images, so no number of the paper belongs "
            "beside it."
        )
    budgets = sorted({line.steps for line in lines if line.steps})
    if len(budgets) > 1:
        found.append("Different numbers of steps stand on lines of their own.")
    if any(line.settings for line in lines):
        found.append("A setting after a method's name is not the published one.")
    marks = {mark for line in lines for mark in line.marks}
    meanings = {
        "other code": "other code: the code that trains has changed since.",
        "unknown code": "unknown code: the commit alone does not tell which code made it.",
        "other settings": "other settings: not the published ones of today, whether somebody asked "
        "for others or they have changed here since.",
    }
    return found + [words for mark, words in meanings.items() if mark in marks]


def columns(lines: Sequence[Line]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows; without the column of marks where nothing is marked."""
    headings = HEADINGS if any(line.marks for line in lines) else HEADINGS[:-1]
    return headings, [cells_of(line)[: len(headings)] for line in lines]


def markdown(lines: Sequence[Line]) -> str:
    return "\n".join(markdown_rows(*columns(lines))) + "\n"


def markdown_rows(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    rule = ["---"] * len(headings)
    return [f"| {' | '.join(row)} |" for row in (headings, rule, *body)]


def comma_separated(lines: Sequence[Line]) -> str:
    """Numbers to compute with: means and deviations in columns of their own."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    spreads = ("last", "median", "best", "paper")
    means = [f"{name}_{part}" for name in spreads for part in ("mean", "deviation")]
    writer.writerow(
        ["cell", "method", "measure", "steps", "folds", *means, "difference", "marks", "settings"]
    )
    for line in lines:
        found: list[Sequence[float | None]] = [
            line.scores.get(name, (None, None)) for name in spreads[:3]
        ]
        found.append(line.published or (None, None))
        numbers = [value for pair in found for value in pair] + [line.difference]
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


def latex(table: Table, lines: Sequence[Line]) -> str:
    """A tabular with booktabs' rules."""
    headings, rows = columns(lines)
    body = [" & ".join(map(escaped, row)) + r" \\" for row in (headings, *rows)]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped(table.title)}. {' '.join(map(escaped, notes(lines)))}}}",
            rf"\begin{{tabular}}{{{'llrlrrrrrl'[: len(headings)]}}}",
            r"\toprule",
            body[0],
            r"\midrule",
            *body[1:],
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def escaped(text: str) -> str:
    return text.translate(TEX)


def write(folder: Path, table: Table, lines: Sequence[Line]) -> list[Path]:
    """Write all three forms."""
    text = {
        "md": markdown(lines) + "\n" + "\n".join(f"- {note}" for note in notes(lines)) + "\n",
        "csv": comma_separated(lines),
        "tex": latex(table, lines),
    }
    paths = [folder / f"table{table.number}.{ending}" for ending in text]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in zip(paths, text.values(), strict=True):
            with aside(path) as place:
                place.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"cannot write to {folder}: {error.strerror}; name another with --out"
        ) from None
    return paths
