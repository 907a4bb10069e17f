"""Accuracy against minutes: the paper's settings and the fast ones, from the ledger."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from fullmatch.experiment.presets import BUDGETS
from fullmatch.reproduce import provenance
from fullmatch.reproduce.entry import LedgerEntry
from fullmatch.reproduce.grid import METHODS, PaperTable, TableCell, TableRow, config_for
from fullmatch.reproduce.lines import (
    Spread,
    compute_spread,
    group_by_settings,
    is_run_of,
    settings_key,
    spread_of,
)
from fullmatch.reproduce.tables import format_spread, markdown_rows
from fullmatch.storage.atomic import explained_errors, write_text

SPEED = PaperTable(
    1,  # whose rows and settings it has
    "Accuracy against minutes",
    tuple(
        next(row for row in METHODS if row.name == name)
        for name in ("FixMatch", "FlexMatch", "FullMatch", "FullFlex")
    ),
    (TableCell("cifar10", 250),),
)
REFERENCE = "FixMatch"  # by the paper's settings: the accuracy that others are timed up to
HEADINGS = (
    "data",
    "method",
    "settings",
    "steps",
    "folds",
    "device",
    "minutes",
    "accuracy",
    f"minutes to the accuracy of {REFERENCE}",
)
NOTES = (
    "Minutes are those of training, without evaluations; mean ± standard deviation over folds. "
    "They can be compared on one device only, and other programs on it make them longer.",
    "Accuracy is that of the averaged model at the last step, in percent.",
    f"The last column has the minutes until the mean accuracy first is that of {REFERENCE} at the "
    "end, by the paper's settings on the same device (of several lines, the one with the most "
    "folds, then the most steps); - if it never is.",
    "A line without numbers has not been run.",
)


class MinutesCurve(NamedTuple):
    """Mean accuracy over minutes, and its deviation over folds; in percent."""

    minutes: tuple[float, ...]
    accuracy: tuple[float, ...]
    deviation: tuple[float, ...]

    def minutes_to(self, accuracy: float) -> float | None:
        """When the accuracy is first reached, between two evaluations by interpolation."""
        before: tuple[float, float] | None = None
        for minute, value in zip(self.minutes, self.accuracy, strict=True):
            if value >= accuracy:
                if before is None:
                    return minute
                start, low = before
                return start + (minute - start) * (accuracy - low) / (value - low)
            before = (minute, value)
        return None


@dataclass(frozen=True)
class SpeedLine:
    """Runs of one method by one budget on one device that differ only in their fold."""

    row: TableRow
    cell: TableCell
    budget: str
    entries: tuple[LedgerEntry, ...] = ()  # empty: nothing has been run
    target: float | None = None  # the accuracy that the last column is about

    @property
    def steps(self) -> int | None:
        return self.entries[0].steps if self.entries else None

    @property
    def device(self) -> str | None:
        return device_of(self.entries[0]) if self.entries else None

    @property
    def weight(self) -> tuple[int, int]:
        """Which of several lines says most: that with the most folds, then the most steps."""
        return len(self.entries), self.steps or 0

    @property
    def minutes(self) -> Spread | None:
        times = [entry.seconds / 60 for entry in self.entries]
        return spread_of(times) if times else None

    @property
    def accuracy(self) -> Spread | None:
        scores = [entry.teacher.last for entry in self.entries if entry.teacher]
        return compute_spread(scores) if scores else None

    @property
    def curve(self) -> MinutesCurve | None:
        """Every fold's evaluations at its own minutes, then the mean of both."""
        folds = [list(evaluations(entry)) for entry in self.entries]
        if not folds or not all(folds):
            return None
        spreads = [
            (sum(minutes) / len(minutes), compute_spread(scores))
            for minutes, scores in (
                zip(*points, strict=True) for points in zip(*folds, strict=False)
            )
        ]
        return MinutesCurve(
            tuple(minute for minute, _ in spreads),
            tuple(spread.mean for _, spread in spreads),
            tuple(spread.deviation or 0.0 for _, spread in spreads),
        )

    @property
    def minutes_to_target(self) -> float | None:
        curve = self.curve
        return None if curve is None or self.target is None else curve.minutes_to(self.target)


def device_of(entry: LedgerEntry) -> str:
    """The device under its name of today; older entries say "1 threads"."""
    return entry.device.replace("(1 threads)", "(1 thread)")


def evaluations(entry: LedgerEntry) -> Iterator[tuple[float, float]]:
    """Minutes and accuracy of every evaluation."""
    import numpy as np

    scores, seconds = entry.curves.get("teacher.top1"), entry.curves.get("seconds")
    if scores is None or seconds is None:
        return
    at = np.interp(scores.steps, seconds.steps, seconds.values).tolist()
    yield from zip((second / 60 for second in at), scores.values, strict=True)


def speed_lines(
    rows: Sequence[TableRow],
    cells: Sequence[TableCell],
    entries: Sequence[LedgerEntry],
    budgets: Sequence[str] = BUDGETS,
) -> list[SpeedLine]:
    """Every method by every budget in every cell; one line per number of steps and device."""
    lines: list[SpeedLine] = []
    for cell in cells:
        found = [
            line
            for row in rows
            for budget in budgets
            for line in lines_of_budget(row, cell, budget, entries)
        ]
        lines += [add_target(line, found) for line in found]
    return lines


def lines_of_budget(
    row: TableRow, cell: TableCell, budget: str, entries: Sequence[LedgerEntry]
) -> list[SpeedLine]:
    runs = [entry for entry in entries if is_run_of(entry, row, cell)]
    chosen = [entry for entry in runs if has_budget(entry, row, cell, budget)]
    by_device: dict[str, list[LedgerEntry]] = {}
    for entry in chosen:
        by_device.setdefault(device_of(entry), []).append(entry)
    groups = [group for each in by_device.values() for group in group_by_settings(each)]
    found = [SpeedLine(row, cell, budget, tuple(group)) for group in groups]
    return found or [SpeedLine(row, cell, budget)]


def has_budget(entry: LedgerEntry, row: TableRow, cell: TableCell, budget: str) -> bool:
    """Whether the settings are those of the budget, with any number of steps."""
    settings = provenance.table_of(config_for(row, cell, 0, entry.steps, budget))
    return settings_key(entry) == provenance.identity(settings)


def add_target(line: SpeedLine, lines: Sequence[SpeedLine]) -> SpeedLine:
    """The line with the accuracy of the reference on the same device, if it was measured."""
    references = [
        other
        for other in lines
        if (other.row.name, other.budget, other.device) == (REFERENCE, "paper", line.device)
        and other.entries
    ]
    known = max(references, key=lambda other: other.weight, default=None)
    target = known.accuracy.mean if known and known.accuracy else None
    return SpeedLine(line.row, line.cell, line.budget, line.entries, target)


def format_speed(line: SpeedLine) -> tuple[str, ...]:
    """One text per heading."""
    until = line.minutes_to_target
    return (
        str(line.cell),
        line.row.name,
        line.budget,
        "not run" if line.steps is None else f"{line.steps:,}",
        ",".join(str(entry.fold) for entry in line.entries) or "-",
        line.device or "-",
        format_spread(line.minutes),
        format_spread(line.accuracy),
        "-" if until is None else f"{until:.2f}",
    )


def speed_markdown(lines: Sequence[SpeedLine]) -> str:
    notes = "".join(f"- {note}\n" for note in NOTES)
    rows = markdown_rows(HEADINGS, [format_speed(line) for line in lines])
    return "\n".join(rows) + f"\n\n{notes}"


def speed_csv(lines: Sequence[SpeedLine]) -> str:
    """Plain numbers, with means and deviations in separate columns."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    spreads = [f"{name}_{part}" for name in ("minutes", "accuracy") for part in Spread._fields]
    heads = ["cell", "method", "settings", "steps", "folds", "device", *spreads]
    writer.writerow([*heads, "target", "minutes_to_target"])
    for line in lines:
        pairs = [value for pair in (line.minutes, line.accuracy) for value in pair or (None, None)]
        numbers = [*pairs, line.target, line.minutes_to_target]
        writer.writerow(
            [
                str(line.cell),
                line.row.name,
                line.budget,
                line.steps or "",
                " ".join(str(entry.fold) for entry in line.entries),
                line.device or "",
                *("" if value is None else round(value, 4) for value in numbers),
            ]
        )
    return text.getvalue()


def write_speed(folder: Path, lines: Sequence[SpeedLine]) -> list[Path]:
    """The table as Markdown and CSV, and one figure per data set and number of labels."""
    from fullmatch.reproduce.figures.minutes import draw_minutes

    with explained_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    texts = {"speed.md": speed_markdown(lines), "speed.csv": speed_csv(lines)}
    for name, text in texts.items():
        write_text(folder / name, text)
    return [*(folder / name for name in texts), *draw_minutes(folder, lines, ("svg", "png", "pdf"))]
