"""From the ledger to the lines of a table: means over folds, never over different settings."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from fullmatch.algorithms import name_of
from fullmatch.config import to_table
from fullmatch.errors import UserError
from fullmatch.reproduce import provenance
from fullmatch.reproduce.entry import LedgerEntry
from fullmatch.reproduce.grid import PaperTable, TableCell, TableRow, config_for
from fullmatch.reproduce.paper import PaperKey, PaperNumber, paper_numbers

LOSS_SETTINGS = ("entropy_meaning", "adaptive_negative", "form", "negatives_on", "alpha", "beta")


class Mark(StrEnum):
    """Why a result may differ from what the current code would give."""

    OTHER_CODE = "other code"
    UNKNOWN_CODE = "unknown code"
    OTHER_SETTINGS = "other settings"


class Spread(NamedTuple):
    """Over folds; the deviation is the population's (divided by the number of folds)."""

    mean: float
    deviation: float | None  # None with one fold


@dataclass(frozen=True)
class TableLine:
    """Runs that differ only in their fold, beside the paper's number."""

    row: TableRow
    cell: TableCell
    measure: str
    published: PaperNumber | None
    steps: int | None = None  # None: nothing has been run
    folds: tuple[int, ...] = ()
    scores: dict[str, Spread] = field(default_factory=dict)  # by protocol
    marks: tuple[Mark, ...] = ()
    settings: tuple[str, ...] = ()  # not as published, if other lines have the same steps

    @property
    def difference(self) -> float | None:
        """From the paper, by the paper's protocol: best, chosen on test."""
        if self.published is None or "best" not in self.scores:
            return None
        return self.scores["best"].mean - self.published.mean


def build_lines(
    table: PaperTable,
    rows: Sequence[TableRow],
    cells: Sequence[TableCell],
    entries: Sequence[LedgerEntry],
    *,
    code: str | None = None,
) -> list[TableLine]:
    """Every row in every cell, with one line per number of steps and set of settings.

    With `code`, the hash of the current code, results of other code or settings are marked.
    """
    return [
        line
        for cell in cells
        for row in rows
        for line in lines_of_row(table, row, cell, entries, code)
    ]


def lines_of_row(
    table: PaperTable,
    row: TableRow,
    cell: TableCell,
    entries: Sequence[LedgerEntry],
    code: str | None,
) -> Iterator[TableLine]:
    groups = group_by_settings(entry for entry in entries if is_run_of(entry, row, cell))
    lines_by_steps = Counter(group[0].steps for group in groups)
    uneven = any(has_uneven_test(group) for group in groups)
    for measure in (*table.measures, *(["balanced"] if uneven else [])):
        number = paper_numbers().get(PaperKey(table.number, row.name, str(cell), measure))
        if not groups:
            yield TableLine(row, cell, measure, number)
        for group in groups:
            unique = lines_by_steps[group[0].steps] == 1
            yield TableLine(
                row,
                cell,
                measure,
                number,
                steps=group[0].steps,
                folds=tuple(entry.fold for entry in group),
                scores=summarize_scores(group, measure),
                marks=find_marks(group, row, cell, code) if code else (),
                settings=() if unique else changed_settings(group[0], row, cell),
            )


def has_uneven_test(entries: Iterable[LedgerEntry]) -> bool:
    """Whether balanced accuracy says more than accuracy."""
    return any(entry.teacher and entry.teacher.balanced_accuracy is not None for entry in entries)


def summarize_scores(entries: Sequence[LedgerEntry], measure: str) -> dict[str, Spread]:
    """The spread of every protocol that all entries have."""
    scores = [entry.teacher.by_protocol(measure) for entry in entries if entry.teacher]
    spreads: dict[str, Spread] = {}
    for protocol in scores[0]:
        fractions = [each[protocol] for each in scores]
        known = [fraction for fraction in fractions if fraction is not None]
        if len(known) == len(fractions):
            spreads[protocol] = compute_spread(known)
    return spreads


def compute_spread(fractions: Sequence[float]) -> Spread:
    """In percent."""
    return spread_of([100 * fraction for fraction in fractions])


def spread_of(values: Sequence[float]) -> Spread:
    return Spread(statistics.fmean(values), statistics.pstdev(values) if len(values) > 1 else None)


def is_run_of(entry: LedgerEntry, row: TableRow, cell: TableCell) -> bool:
    """Whether an entry is of this method on this data, whatever its other settings."""
    if (entry.data, entry.labels) != (cell.data, cell.labels) or entry.teacher is None:
        return False
    spec = row.spec()
    same_losses = loss_settings(entry.algorithm) == loss_settings(to_table(spec))
    return entry.algorithm["name"] == name_of(spec) and same_losses


def loss_settings(algorithm: Mapping[str, Any]) -> dict[str, Any] | None:
    """Which of FullMatch's two losses are used, and in which form."""
    full = algorithm.get("full")
    return None if full is None else {name: full[name] for name in LOSS_SETTINGS}


def group_by_settings(entries: Iterable[LedgerEntry]) -> list[list[LedgerEntry]]:
    """Entries of equal settings and steps, sorted by fold; of a fold only the newest."""
    groups: dict[tuple[int, str], dict[int, LedgerEntry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.steps, entry.date, entry.name)):
        groups.setdefault((entry.steps, settings_key(entry)), {})[entry.fold] = entry
    return [[group[fold] for fold in sorted(group)] for group in groups.values()]


def settings_key(entry: LedgerEntry) -> str:
    """A hash of all settings but the fold; the raw settings if this version cannot read them."""
    config = entry.config | {"seed": 0}
    try:
        return provenance.identity(config)
    except UserError:
        return "unreadable " + repr(sorted(provenance.flatten(config).items()))


def changed_settings(entry: LedgerEntry, row: TableRow, cell: TableCell) -> tuple[str, ...]:
    """The settings of a run that are not as published, as `--set` takes them."""
    tables = entry.config | {"seed": 0}, published_settings(row, cell, entry.steps)
    try:
        own, usual = (provenance.flatten(provenance.relevant_settings(table)) for table in tables)
    except UserError:  # has settings that no longer exist; those it lacks have their defaults
        own, usual = map(provenance.flatten, tables)
        own = usual | own
    names = sorted(name for name in own | usual if own.get(name) != usual.get(name))
    return tuple(f"{name}={provenance.format_setting(own.get(name, 'none'))}" for name in names)


def published_settings(row: TableRow, cell: TableCell, steps: int) -> dict[str, Any]:
    return provenance.table_of(config_for(row, cell, 0, steps))


def find_marks(
    entries: Sequence[LedgerEntry], row: TableRow, cell: TableCell, code: str
) -> tuple[Mark, ...]:
    marks: list[Mark] = []
    published = provenance.identity(published_settings(row, cell, entries[0].steps))
    if settings_key(entries[0]) != published:
        marks.append(Mark.OTHER_SETTINGS)
    if any(entry.code is None for entry in entries):
        marks.append(Mark.UNKNOWN_CODE)
    elif not all(provenance.same_code(entry.code, code) for entry in entries):
        marks.append(Mark.OTHER_CODE)
    return tuple(marks)
