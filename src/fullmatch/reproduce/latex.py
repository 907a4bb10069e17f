"""A table for a paper: methods by data sets and numbers of labels, in LaTeX with booktabs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from fullmatch.reproduce.grid import PaperTable, TableCell
from fullmatch.reproduce.lines import Spread, TableLine
from fullmatch.reproduce.names import data_name
from fullmatch.reproduce.paper import STEPS

PROTOCOLS = {
    "best": "the best of all evaluations, chosen on the test images",
    "median": "the median of the last 20 evaluations",
    "last": "the last step",
}
MEASURES = {"top1": "top-1", "top5": "top-5", "balanced": "balanced"}
NARROW = 4  # columns that fit into one column of a page

# A setting may be a path, which can contain any character.
TEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "%_&#${}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"±": r"$\pm$", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)


class GridColumn(NamedTuple):
    """One column of numbers."""

    cell: TableCell
    measure: str


class GridRow(NamedTuple):
    """One method; with steps where a column mixes several numbers of them."""

    method: str
    settings: tuple[str, ...] = ()
    steps: int | None = None

    def __str__(self) -> str:
        steps = () if self.steps is None else (f"{self.steps:,} steps",)
        return ", ".join([self.method, *self.settings, *steps])


class Grid(NamedTuple):
    """The lines of a table by row and column, and the paper's own numbers."""

    columns: list[GridColumn]
    lines: dict[GridRow, dict[GridColumn, TableLine]]
    published: dict[str, dict[GridColumn, Spread]]  # by method


def make_grid(lines: Sequence[TableLine]) -> Grid:
    """Methods without runs have no row, unless the paper has numbers of them."""
    columns = list(dict.fromkeys(column_of(line) for line in lines))
    per_column = {column_of(line): set[int]() for line in lines}
    grid = Grid(columns, {}, {})
    for line in lines:
        if line.steps is not None:
            per_column[column_of(line)].add(line.steps)
        if line.published:
            numbers = grid.published.setdefault(line.row.name, {})
            numbers[column_of(line)] = Spread(*line.published)
    mixed = any(len(steps) > 1 for steps in per_column.values())
    for line in lines:
        if line.steps is not None:
            row = GridRow(line.row.name, line.settings, line.steps if mixed else None)
            grid.lines.setdefault(row, {})[column_of(line)] = line
    return grid


def column_of(line: TableLine) -> GridColumn:
    return GridColumn(line.cell, line.measure)


def to_latex(
    table: PaperTable,
    lines: Sequence[TableLine],
    notes: Iterable[str] = (),
    protocol: str = "best",
) -> str:
    """A float with a caption, a label and the notes below the numbers."""
    grid = make_grid(lines)
    wide = len(grid.columns) > NARROW
    kind, size = ("table*", r"\scriptsize") if wide else ("table", r"\small")
    remarks = Footnotes(grid)
    body = [*measured_rows(grid, protocol, remarks), *published_rows(grid)]
    explained = escape_latex(describe_grid(grid, protocol))
    below = [explained, *remarks.texts(), *map(escape_latex, notes)]
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            rf"\begin{{{kind}}}",
            r"\centering",
            rf"\caption{{{escape_latex(table.title)}}}",
            rf"\label{{tab:table{table.number}}}",
            rf"{size}\setlength{{\tabcolsep}}{{{2 if wide else 5}pt}}",
            rf"\begin{{tabular}}{{@{{}}l{'c' * len(grid.columns)}@{{}}}}",
            r"\toprule",
            *headings(grid.columns),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\par\smallskip",
            r"\begin{minipage}{\linewidth}\footnotesize",
            *below,
            r"\end{minipage}",
            rf"\end{{{kind}}}",
            "",
        ]
    )


def headings(columns: Sequence[GridColumn]) -> list[str]:
    """Data sets above their numbers of labels, and measures where there are several."""
    names, rules, at = ["Method"], list[str](), 2
    for data, group in groupby(columns, key=lambda column: column.cell.data):
        width = len(list(group))
        names.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(data_name(data))}}}")
        rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    several = any(column.measure != "top1" for column in columns)
    labels = [
        f"{column.cell.labels:,}" + (f", {MEASURES[column.measure]}" if several else "")
        for column in columns
    ]
    return [join_cells(names), "".join(rules), join_cells(["Labels", *labels])]


def measured_rows(grid: Grid, protocol: str, remarks: "Footnotes") -> list[str]:
    """Every row with runs; the best number of a column is bold."""
    spreads = {
        (row, column): spread
        for row, cells in grid.lines.items()
        for column, line in cells.items()
        if (spread := line.scores.get("last" if column.measure == "balanced" else protocol))
    }
    best = best_by_column(spreads)
    rows: list[str] = []
    for row, cells in grid.lines.items():
        texts = [escape_latex(str(row))]
        for column in grid.columns:
            spread = spreads.get((row, column))
            bold = spread is not None and f"{spread.mean:.2f}" == best[column]
            marks = remarks.letters(cells[column]) if column in cells else ""
            texts.append(format_latex(spread, bold) + marks)
        rows.append(join_cells(texts))
    return rows


def best_by_column(spreads: dict[tuple[GridRow, GridColumn], Spread]) -> dict[GridColumn, str]:
    """The highest mean as it is printed, so that equal numbers are all bold."""
    best: dict[GridColumn, float] = {}
    for (_, column), spread in spreads.items():
        best[column] = max(best.get(column, spread.mean), spread.mean)
    return {column: f"{mean:.2f}" for column, mean in best.items()}


def published_rows(grid: Grid) -> list[str]:
    """The paper's numbers, below a rule of their own."""
    if not grid.published:
        return []
    width = len(grid.columns) + 1
    title = rf"\multicolumn{{{width}}}{{@{{}}l}}{{\emph{{As published}}}} \\"
    rows = [
        join_cells([escape_latex(method), *(format_latex(numbers.get(c)) for c in grid.columns)])
        for method, numbers in grid.published.items()
    ]
    return [*([r"\midrule"] if grid.lines else []), title, *rows]


def format_latex(spread: Spread | None, bold: bool = False) -> str:
    if spread is None:
        return "--"
    mean = rf"\textbf{{{spread.mean:.2f}}}" if bold else f"{spread.mean:.2f}"
    return mean if spread.deviation is None else rf"{mean}$_{{\pm {spread.deviation:.2f}}}$"


def join_cells(texts: Sequence[str]) -> str:
    return " & ".join(texts) + r" \\"


class Footnotes:
    """Letters behind numbers that differ from the others in how they were made."""

    def __init__(self, grid: Grid) -> None:
        lines = [line for cells in grid.lines.values() for line in cells.values()]
        counts = Counter(len(line.folds) for line in lines)
        self.usual_folds = counts.most_common(1)[0][0] if counts else 0
        self.known = list(dict.fromkeys(text for line in lines for text in self.remarks(line)))

    def remarks(self, line: TableLine) -> list[str]:
        count = len(line.folds)
        folds = [] if count == self.usual_folds else [f"{count} run{'s' if count > 1 else ''}"]
        return [*folds, *line.marks]

    def letters(self, line: TableLine) -> str:
        letters = ",".join(chr(ord("a") + self.known.index(text)) for text in self.remarks(line))
        return rf"\textsuperscript{{{letters}}}" if letters else ""

    def texts(self) -> list[str]:
        return [
            rf"\textsuperscript{{{chr(ord('a') + at)}}}\,{escape_latex(text)}."
            for at, text in enumerate(self.known)
        ]


def describe_grid(grid: Grid, protocol: str) -> str:
    """What the numbers are."""
    lines = [line for cells in grid.lines.values() for line in cells.values()]
    counts = Counter(len(line.folds) for line in lines)
    text = "Accuracy (%) of the averaged model on the test images"
    if counts and (folds := counts.most_common(1)[0][0]) > 1:
        text += f", mean ± standard deviation over {folds} choices of labels"
    text += f"; {PROTOCOLS[protocol]}." + steps_note(lines)
    if grid.published:
        text += f" Published numbers: the best of {STEPS:,} steps, chosen on the test images."
    return text + (" The best measured number of a column is bold." if lines else "")


def steps_note(lines: Sequence[TableLine]) -> str:
    """The number of steps, per data set where they differ."""
    steps: dict[int, list[str]] = {}
    for line in lines:
        names = steps.setdefault(line.steps or 0, [])
        if (name := data_name(line.cell.data)) not in names:
            names.append(name)
    if len(steps) == 1:
        return f" {next(iter(steps)):,} steps of training."
    texts = [f"{count:,} steps ({', '.join(names)})" for count, names in steps.items()]
    return f" Training: {', '.join(texts)}." if texts else ""


def escape_latex(text: str) -> str:
    return text.translate(TEX)
