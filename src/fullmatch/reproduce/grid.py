"""The grid of the paper's tables: rows (methods), cells (data and labels) and folds."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fullmatch.algorithms import ALGORITHMS, full, is_algorithm, names
from fullmatch.algorithms import algorithm as spec_of
from fullmatch.config import ExperimentConfig
from fullmatch.data import find_benchmark
from fullmatch.data.sources.catalog import Benchmark
from fullmatch.errors import UserError, did_you_mean
from fullmatch.experiment import presets
from fullmatch.reproduce.names import algorithm_name
from fullmatch.reproduce.paper import weights_name

T = TypeVar("T")
MAX_FOLDS = 1000  # in one range; more is a typo


@dataclass(frozen=True)
class TableRow:
    """A method as a table names it, and its spec."""

    name: str
    algorithm: str
    options: dict[str, Any] = field(default_factory=dict)  # of the two losses, if not the defaults

    def spec(self) -> Any:
        spec = spec_of(self.algorithm)
        return full(spec, **self.options) if self.options else spec

    @property
    def key(self) -> str:
        """The row as part of a folder's name."""
        name = self.algorithm if self.algorithm.startswith("full-") else self.name.lower()
        return re.sub(r"[^a-z0-9.]+", "-", name).strip("-")


@dataclass(frozen=True)
class TableCell:
    """A data set and the number of its labels that are used."""

    data: str
    labels: int

    def __str__(self) -> str:
        return f"{self.data}-{self.labels}"


def facts_of(data: str) -> Benchmark:
    """What is known about the data set of a cell."""
    facts = find_benchmark(data)
    assert facts is not None, data  # a cell is parsed from the name of a benchmark
    return facts


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper: its rows, the cells it prints, and what it measures."""

    number: int
    title: str
    rows: tuple[TableRow, ...]
    cells: tuple[TableCell, ...]
    measures: tuple[str, ...] = ("top1",)


def _rows(**algorithms: str) -> tuple[TableRow, ...]:
    return tuple(
        TableRow(name.replace("_", "-"), algorithm) for name, algorithm in algorithms.items()
    )


METHODS = _rows(
    UDA="uda",
    ReMixMatch="remixmatch",
    SemCo="semco",
    Dash="dash",
    UPS="ups",
    AlphaMatch="alphamatch",
    CoMatch="comatch",
    SimMatch="simmatch",
    DoubleMatch="doublematch",
    CR="crmatch",
    NP_Match="npmatch",
    FixMatch="fixmatch",
    FullMatch="fullmatch",
    FlexMatch="flexmatch",
    FullFlex="fullflex",
)
EML = {"adaptive_negative": False}
ANL = {"entropy_meaning": False}
ABLATIONS = (
    TableRow("FixMatch", "fixmatch"),
    TableRow("FixMatch+EML(CE)", "fullmatch", {**EML, "form": "ce"}),
    TableRow("FixMatch+EML(BCE)", "fullmatch", EML),
    TableRow("FixMatch+ANL(w PL)", "fullmatch", {**ANL, "negatives_on": "selected"}),
    TableRow("FixMatch+ANL(w/o PL)", "fullmatch", {**ANL, "negatives_on": "unselected"}),
    TableRow("FixMatch+ANL(all)", "fullmatch", ANL),
    TableRow("FullMatch", "fullmatch"),
)
SWEEP = tuple(
    TableRow(weights_name(alpha, beta), "fullmatch", {"alpha": alpha, "beta": beta})
    for alpha in (0.5, 1.0, 2.0)
    for beta in (0.5, 1.0, 2.0)
)
TABLES = {
    1: PaperTable(
        1,
        "Top-1 accuracy (%)",
        METHODS,
        tuple(
            TableCell(data, labels)
            for data in ("cifar10", "cifar100", "svhn", "stl10")
            for labels in presets.LABELS[data]
        ),
    ),
    2: PaperTable(
        2,
        "Top-1 and top-5 accuracy (%) on ImageNet",
        tuple(row for row in METHODS if row.name in ("UPS", "NP-Match") or row in METHODS[-4:]),
        (TableCell("imagenet", 100_000),),
        ("top1", "top5"),
    ),
    3: PaperTable(3, "Ablation of FullMatch", ABLATIONS, (TableCell("cifar100", 400),)),
    4: PaperTable(4, "Weights of the two losses", SWEEP, (TableCell("cifar100", 10_000),)),
}


def parse_cell(text: str) -> TableCell:
    """A cell from text such as cifar10-250."""
    data, _, labels = text.strip().rpartition("-")
    cells = [f"{name}-{count}" for name, counts in presets.LABELS.items() for count in counts]
    if not labels.isdigit() or int(labels) < 1 or find_benchmark(data) is None:
        raise UserError(
            f"unknown cell {text!r}: expected DATA-LABELS, such as {', '.join(cells)}, with a "
            "benchmark of this package or of a module:function"
            f"{did_you_mean(text, cells)}"
        )
    return TableCell(data, int(labels))


def find_row(table: PaperTable, name: str) -> TableRow:
    """A row by its name, its key or its algorithm; in Table 1 any algorithm is a row."""
    for row in table.rows:
        if name.lower() in (row.name.lower(), row.key, row.algorithm):
            # Several ablations share an algorithm, so it does not identify them.
            if name.lower() == row.algorithm and row.options:
                continue
            return row
    if table.number == 1 and is_algorithm(name):
        return TableRow(algorithm_name(name), name)
    raise unknown_row(table, name)


def unknown_row(table: PaperTable, name: str) -> UserError:
    listed, more, others = [row.key for row in table.rows], "", list[str]()
    if table.number == 1:
        listed = list(dict.fromkeys([*(row.algorithm for row in METHODS), *ALGORITHMS]))
        more, others = ", or full-X for any X that has pseudo-labels", names()
    return UserError(
        f"unknown row {name!r} of table {table.number}: expected some of "
        f"{', '.join(listed)}{more}{did_you_mean(name, [*listed, *others])}"
    )


def select_rows(table: PaperTable, text: str | None) -> tuple[TableRow, ...]:
    """The rows listed in `text`, or all rows of the table."""
    return select("--algorithms", table.rows, text, lambda name: find_row(table, name))


def select_cells(table: PaperTable, text: str | None) -> tuple[TableCell, ...]:
    """The cells listed in `text`, or all cells of the table."""
    return select("--cells", table.cells, text, parse_cell)


def select(
    flag: str, default: tuple[T, ...], text: str | None, find: Callable[[str], T]
) -> tuple[T, ...]:
    """Every item of a comma-separated list once, or the default."""
    if text is None:
        return default
    items: list[T] = []
    for word in filter(None, map(str.strip, text.split(","))):
        if (item := find(word)) not in items:
            items.append(item)
    if not items:
        raise UserError(f"{flag} {text!r} is empty; list at least one, or omit {flag}")
    return tuple(items)


def parse_folds(text: str, what: str = "folds") -> tuple[int, ...]:
    """Numbers of folds or seeds from text such as 0-2 or 0,2."""
    folds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match:
            raise UserError(f"{what} {text!r}: expected numbers such as 0-2 or 0,2")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < first + MAX_FOLDS:
            raise UserError(
                f"{what} {text!r}: {part.strip()} is empty or has more than {MAX_FOLDS} {what}; "
                "expected numbers such as 0-2 or 0,2"
            )
        folds += range(first, last + 1)
    return tuple(dict.fromkeys(folds))


def config_for(
    row: TableRow,
    cell: TableCell,
    fold: int,
    steps: int | None = None,
    budget: str = "paper",
) -> ExperimentConfig:
    """The published settings of one run; a fold is the seed of its labels and its training."""
    config = presets.default(cell.data, cell.labels, row.algorithm, budget)
    training = replace(config.training, steps=steps) if steps else config.training
    spec = full(config.algorithm, **row.options) if row.options else config.algorithm
    return replace(config, algorithm=spec, seed=fold, training=training)
