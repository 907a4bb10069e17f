"""The table of a sweep: mean and deviation over seeds, best first."""

import csv
import io
import statistics
from dataclasses import dataclass
from pathlib import Path

from fullmatch.storage.atomic import write_text
from fullmatch.sweeps.folder import Sweep
from fullmatch.sweeps.score import RunScore, ScoreKind
from fullmatch.sweeps.space import SweepPoint


@dataclass(frozen=True)
class SweepRow:
    """One combination of values, and the scores of its runs by seed."""

    point: SweepPoint
    scores: dict[int, RunScore]  # of the runs that are done
    seeds: int  # that it should have

    @property
    def finished(self) -> list[float]:
        """Scores of the runs that did not diverge."""
        return [each.score for each in self.scores.values() if each.score is not None]

    @property
    def diverged(self) -> int:
        return len(self.scores) - len(self.finished)

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.finished) if self.finished else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation over seeds; None with fewer than two."""
        return statistics.stdev(self.finished) if len(self.finished) > 1 else None

    @property
    def test(self) -> float | None:
        """The mean test accuracy on a benchmark."""
        values = [each.test for each in self.scores.values() if each.test is not None]
        return statistics.fmean(values) if values else None

    @property
    def rank(self) -> tuple[bool, float]:
        """Best first; settings that diverge with some seed are last."""
        return self.diverged > 0, -(self.mean if self.mean is not None else -1.0)


@dataclass(frozen=True)
class SweepTable:
    """What a sweep has found so far."""

    folder: Path
    names: tuple[str, ...]  # of the settings
    rows: tuple[SweepRow, ...]  # best first
    seeds: tuple[int, ...]
    score: ScoreKind
    points: int  # that there will be in the end
    searched: bool = False  # by trials, not as a grid

    @property
    def best(self) -> SweepRow | None:
        first = self.rows[0] if self.rows else None
        return first if first and first.mean is not None else None

    @property
    def varied(self) -> list[str]:
        """Settings of which more than one value is done."""
        values = [value for row in self.rows for value in row.point.values]
        return [name for name in self.names if len({v for n, v in values if n == name}) > 1]

    @property
    def headings(self) -> list[str]:
        compared = ["test accuracy"] if self.shows_test else []
        return [*self.names, "seeds", self.score.heading, "deviation", *compared]

    @property
    def shows_test(self) -> bool:
        held_out = self.score is ScoreKind.HELD_OUT
        return held_out and any(row.test is not None for row in self.rows)

    def cells(self, row: SweepRow) -> list[str]:
        done = (
            f"{len(row.scores)}"
            if len(row.scores) == row.seeds
            else (f"{len(row.scores)} of {row.seeds}")
        )
        if row.diverged:
            done += f", {row.diverged} diverged"
        values = [value for _, value in row.point.values]
        compared = [in_percent(row.test)] if self.shows_test else []
        return [*values, done, in_percent(row.mean), in_percent(row.deviation), *compared]

    @property
    def notes(self) -> list[str]:
        """What the numbers mean, and what to do next."""
        notes = [MEANINGS[self.score]]
        if len(self.rows) > 1:
            notes.append(
                f"The best of {len(self.rows)} settings looks better than it is: part of its lead "
                "is luck. Measure it on pictures that had no part in the choice."
            )
        done = sum(len(row.scores) for row in self.rows)
        total = self.points * len(self.seeds)
        if done < total:
            notes.append(f"{done} of {total} runs are done.")
        return notes

    def to_markdown(self) -> str:
        lines = [self.headings, ["---"] * len(self.headings), *map(self.cells, self.rows)]
        escaped = [[cell.replace("|", r"\|") for cell in line] for line in lines]
        table = [f"| {' | '.join(line)} |" for line in escaped]
        return "\n".join(["# Sweep", "", *table, "", "\n\n".join(self.notes), ""])

    def to_csv(self) -> str:
        """One row per combination, with the score of every seed; fractions in [0, 1]."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        numbers = ["score", "mean", "deviation", "test_accuracy", "diverged"]
        writer.writerow([*self.names, *numbers, *(f"seed_{seed}" for seed in self.seeds)])
        for row in self.rows:
            values = [value for _, value in row.point.values]
            means = [self.score.value, *map(exact, (row.mean, row.deviation, row.test))]
            scores = [row.scores.get(seed) for seed in self.seeds]
            by_seed = [exact(each.score) if each else "" for each in scores]
            writer.writerow([*values, *means, row.diverged, *by_seed])
        return file.getvalue()

    def write(self) -> list[Path]:
        paths = [self.folder / "sweep.csv", self.folder / "sweep.md"]
        for path, text in zip(paths, (self.to_csv(), self.to_markdown()), strict=True):
            write_text(path, text)
        return paths


MEANINGS = {
    ScoreKind.HELD_OUT: "Settings are compared by labels that were held out: models trained "
    "without them predict them. Test pictures play no part in it.",
    ScoreKind.TEST: "Chosen on test: settings are compared by the test accuracy of the benchmark, "
    "so the best one is too optimistic.",
}


def build_table(sweep: Sweep) -> SweepTable:
    """All combinations that have at least one finished run."""
    rows = [make_row(sweep, point) for point in sweep.points()]
    done = sorted((row for row in rows if row.scores), key=lambda row: row.rank)
    request = sweep.request
    names = tuple(choice.name for choice in sweep.choices)
    return SweepTable(
        sweep.path,
        names,
        tuple(done),
        request.seeds,
        request.score,
        points=request.trials or len(rows),
        searched=sweep.search is not None,
    )


def make_row(sweep: Sweep, point: SweepPoint) -> SweepRow:
    runs = sweep.runs_of(point)
    scores = {run.seed: score for run in runs if (score := sweep.read_score(run)) is not None}
    return SweepRow(point, scores, len(runs))


def in_percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"


def exact(value: float | None) -> str:
    return "" if value is None else repr(value)
