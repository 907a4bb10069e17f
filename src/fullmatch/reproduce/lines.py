"""From the ledger to the lines of a table: means over folds, never over different settings."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fullmatch.algorithms import name_of
from fullmatch.config import SettingsTable as Settings
from fullmatch.config import to_table
from fullmatch.errors import UserError
from fullmatch.reproduce import provenance
from fullmatch.reproduce.grid import Cell, Row, Table, config_for
from fullmatch.reproduce.paper import Key, Published, published

LOSSES = ("entropy_meaning", "adaptive_negative", "form", "negatives_on", "alpha", "beta")
PROTOCOLS = {"last": "last", "median": "median_last_20", "best": "best_chosen_on_test"}
TOP5 = {"last": "top5", "best": "top5_at_best"}


class Spread(NamedTuple):
    """Percent over folds; the deviation is the folds' own (divided by their number)."""

    mean: float
    deviation: float | None  # None: one fold


@dataclass(frozen=True)
class Line:
    """Runs that differ in nothing but their fold, beside what the paper says."""

    row: Row
    cell: Cell
    measure: str
    published: Published | None
    steps: int | None = None  # None: nothing has been run
    folds: tuple[int, ...] = ()
    scores: dict[str, Spread] = field(default_factory=dict)  # by protocol
    marks: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()  # not as published, where other lines have the same steps

    @property
    def difference(self) -> float | None:
        """To the paper, by the paper's protocol: best, chosen on test."""
        if self.published is None or "best" not in self.scores:
            return None
        return self.scores["best"].mean - self.published.mean


def lines(
    table: Table,
    rows: Sequence[Row],
    cells: Sequence[Cell],
    entries: Sequence[dict[str, Any]],
    *,
    code: str | None = None,
) -> list[Line]:
    """Every row in every cell; different steps or settings stand apart, and settings are named.

    `code` is the hash of the code at hand: with it, results of other code or of other settings
    than today's are marked.
    """
    found: list[Line] = []
    for cell in cells:
        for row in rows:
            groups = grouped(entry for entry in entries if belongs(entry, row, cell))
            steps = Counter(same[0]["steps"] for same in groups)
            for measure in table.measures:
                paper = published().get(Key(table.number, row.name, str(cell), measure))
                if not groups:
                    found.append(Line(row, cell, measure, paper))
                for same in groups:
                    marks = marks_of(same, row, cell, code) if code else ()
                    alone = steps[same[0]["steps"]] == 1
                    named = () if alone else departures(same[0], row, cell)
                    found.append(line(row, cell, measure, paper, same, marks, named))
    return found


def line(
    row: Row,
    cell: Cell,
    measure: str,
    paper: Published | None,
    entries: Sequence[dict[str, Any]],
    marks: tuple[str, ...],
    settings: tuple[str, ...],
) -> Line:
    names = PROTOCOLS if measure == "top1" else TOP5
    teachers = [entry["scores"]["teacher"] for entry in entries]
    scores = {
        protocol: spread([teacher[name] for teacher in teachers])
        for protocol, name in names.items()
        if all(teacher.get(name) is not None for teacher in teachers)
    }
    folds = tuple(entry["config"]["seed"] for entry in entries)
    return Line(row, cell, measure, paper, entries[0]["steps"], folds, scores, marks, settings)


def spread(shares: Sequence[float]) -> Spread:
    percents = [100 * share for share in shares]
    deviation = statistics.pstdev(percents) if len(percents) > 1 else None
    return Spread(statistics.fmean(percents), deviation)


def belongs(entry: dict[str, Any], row: Row, cell: Cell) -> bool:
    """Whether a result is of this method on this data, whatever its other settings."""
    data, algorithm = entry["config"]["data"], entry["config"]["algorithm"]
    here = (data["name"], data.get("labels")) == (cell.data, cell.labels)
    if not here or "teacher" not in entry["scores"]:
        return False
    spec = row.spec()
    return algorithm["name"] == name_of(spec) and losses(algorithm) == losses(to_table(spec))


def losses(algorithm: Settings) -> Settings | None:
    """Which of the two losses are there, in which form."""
    full = algorithm.get("full")
    return None if full is None else {name: full[name] for name in LOSSES}


def grouped(entries: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Entries of equal settings and steps, in the order of their folds, each fold once."""
    groups: dict[tuple[int, str], dict[int, dict[str, Any]]] = {}
    for entry in sorted(entries, key=lambda entry: (entry["steps"], entry["date"], entry["name"])):
        key = entry["steps"], settings(entry)
        groups.setdefault(key, {})[entry["config"]["seed"]] = entry
    return [[group[fold] for fold in sorted(group)] for group in groups.values()]


def settings(entry: dict[str, Any]) -> str:
    """A hash of all settings but the fold; of the raw text where today's code cannot read them."""
    try:
        return provenance.identity(entry["config"] | {"seed": 0})
    except UserError:
        return "unreadable " + repr(sorted(provenance.flat(entry["config"] | {"seed": 0}).items()))


def departures(entry: dict[str, Any], row: Row, cell: Cell) -> tuple[str, ...]:
    """What a run did otherwise than published, as `--set` would say it."""
    tables = entry["config"] | {"seed": 0}, today(row, cell, entry["steps"])
    try:
        own, usual = (provenance.flat(provenance.decisive(table)) for table in tables)
    except UserError:  # settings that are no more; what they lack is new, and as usual
        own, usual = map(provenance.flat, tables)
        own = usual | own
    names = sorted(name for name in own | usual if own.get(name) != usual.get(name))
    return tuple(f"{name}={provenance.written(own.get(name, 'none'))}" for name in names)


def today(row: Row, cell: Cell, steps: int) -> Settings:
    """The published settings as they stand here."""
    return provenance.table_of(config_for(row, cell, 0, steps))


def marks_of(entries: Sequence[dict[str, Any]], row: Row, cell: Cell, code: str) -> tuple[str, ...]:
    """Why a result may not be what today's code would give."""
    marks: list[str] = []
    if settings(entries[0]) != provenance.identity(today(row, cell, entries[0]["steps"])):
        marks.append("other settings")
    if any(entry["code"] is None for entry in entries):
        marks.append("unknown code")
    elif not all(provenance.same_code(entry["code"], code) for entry in entries):
        marks.append("other code")
    return tuple(marks)
