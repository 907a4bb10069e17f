"""What the paper's tables are made of: rows (methods), cells (data and labels) and folds."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fullmatch.algorithms import ALGORITHMS, ALIASES, full, names
from fullmatch.algorithms import algorithm as spec_of
from fullmatch.config import ExperimentConfig
from fullmatch.data import DATASETS
from fullmatch.errors import UserError, did_you_mean
from fullmatch.experiment import presets
from fullmatch.reproduce.paper import weights

T = TypeVar("T")
FOLDS = 1000  # in one range, at most: more is a slip of the finger


@dataclass(frozen=True)
class Row:
    """A method as a table names it, and how to ask for it."""

    name: str
    algorithm: str
    options: dict[str, Any] = field(default_factory=dict)  # of the two losses, where not default

    def spec(self) -> Any:
        spec = spec_of(self.algorithm)
        return full(spec, **self.options) if self.options else spec

    @property
    def key(self) -> str:
        """The row in the name of a folder."""
        return re.sub(r"[^a-z0-9.]+", "-", self.name.lower()).strip("-")


@dataclass(frozen=True)
class Cell:
    """A data set and how many of its labels are kept."""

    data: str
    labels: int

    def __str__(self) -> str:
        return f"{self.data}-{self.labels}"


@dataclass(frozen=True)
class Table:
    """A table of the paper: its rows, the cells it prints, and what it measures."""

    number: int
    title: str
    rows: tuple[Row, ...]
    cells: tuple[Cell, ...]
    measures: tuple[str, ...] = ("top1",)


def _plain(**algorithms: str) -> tuple[Row, ...]:
    return tuple(Row(name.replace("_", "-"), algorithm) for name, algorithm in algorithms.items())


METHODS = _plain(
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
    Row("FixMatch", "fixmatch"),
    Row("FixMatch+EML(CE)", "fullmatch", {**EML, "form": "ce"}),
    Row("FixMatch+EML(BCE)", "fullmatch", EML),
    Row("FixMatch+ANL(w PL)", "fullmatch", {**ANL, "negatives_on": "selected"}),
    Row("FixMatch+ANL(w/o PL)", "fullmatch", {**ANL, "negatives_on": "unselected"}),
    Row("FixMatch+ANL(all)", "fullmatch", ANL),
    Row("FullMatch", "fullmatch"),
)
SWEEP = tuple(
    Row(weights(alpha, beta), "fullmatch", {"alpha": alpha, "beta": beta})
    for alpha in (0.5, 1.0, 2.0)
    for beta in (0.5, 1.0, 2.0)
)
TABLES = {
    1: Table(
        1,
        "Top-1 accuracy (%)",
        METHODS,
        tuple(
            Cell(data, labels)
            for data in ("cifar10", "cifar100", "svhn", "stl10")
            for labels in presets.LABELS[data]
        ),
    ),
    2: Table(
        2,
        "Top-1 and top-5 accuracy (%) on ImageNet",
        tuple(row for row in METHODS if row.name in ("UPS", "NP-Match") or row in METHODS[-4:]),
        (Cell("imagenet", 100_000),),
        ("top1", "top5"),
    ),
    3: Table(3, "FullMatch part by part", ABLATIONS, (Cell("cifar100", 400),)),
    4: Table(4, "Weights of the two losses", SWEEP, (Cell("cifar100", 10_000),)),
}


def cell(text: str) -> Cell:
    """A cell such as cifar10-250."""
    data, _, labels = text.strip().rpartition("-")
    known = [f"{name}-{count}" for name, counts in presets.LABELS.items() for count in counts]
    if data not in DATASETS or not labels.isdigit() or int(labels) < 1:
        raise UserError(
            f"unknown cell {text!r}: expected DATA-LABELS, such as {', '.join(known)}"
            f"{did_you_mean(text, known)}"
        )
    return Cell(data, int(labels))


def rows(table: Table, algorithms: str | None) -> tuple[Row, ...]:
    """The rows asked for by name, or all; Table 1 takes any algorithm there is."""
    return chosen("--algorithms", table.rows, algorithms, lambda name: row(table, name))


def row(table: Table, name: str) -> Row:
    for known in table.rows:
        if name.lower() in (known.name.lower(), known.key, known.algorithm):
            # An ablation's algorithm does not name it: several rows share it.
            if name.lower() == known.algorithm and known.options:
                continue
            return known
    if table.number == 1 and (name in ALIASES or name in names()):
        return Row(name, name)
    known_names, more, others = [known.key for known in table.rows], "", list[str]()
    if table.number == 1:
        known_names = list(dict.fromkeys([*(r.algorithm for r in METHODS), *ALGORITHMS]))
        more, others = ", or full-X for any X that has pseudo-labels", names()
    raise UserError(
        f"unknown row {name!r} of table {table.number}: expected some of "
        f"{', '.join(known_names)}{more}{did_you_mean(name, [*known_names, *others])}"
    )


def cells(table: Table, asked: str | None) -> tuple[Cell, ...]:
    return chosen("--cells", table.cells, asked, cell)


def folds(text: str) -> tuple[int, ...]:
    """Fold numbers from 0-2 or 0,2."""
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match:
            raise UserError(f"folds {text!r}: expected numbers such as 0-2 or 0,2")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < first + FOLDS:
            raise UserError(
                f"folds {text!r}: {part.strip()} names none, or more than {FOLDS}; expected "
                "numbers such as 0-2 or 0,2"
            )
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def config_for(row: Row, cell: Cell, fold: int, steps: int | None = None) -> ExperimentConfig:
    """The published setting of one run; a fold is the seed of its labels and of its start."""
    config = presets.default(cell.data, cell.labels, row.algorithm)
    training = replace(config.training, steps=steps) if steps else config.training
    return replace(config, algorithm=row.spec(), seed=fold, training=training)


def chosen(
    flag: str, everything: tuple[T, ...], asked: str | None, find: Callable[[str], T]
) -> tuple[T, ...]:
    if asked is None:
        return everything
    words = asked.split(",")
    found: list[T] = []
    for word in filter(None, map(str.strip, words)):
        item = find(word)
        if item not in found:
            found.append(item)
    if not found:
        raise UserError(f"{flag} {asked!r} names none; name some, or leave it out")
    return tuple(found)
