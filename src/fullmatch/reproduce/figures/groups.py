"""Runs that differ only in their seed, which figures draw as one line with a band."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fullmatch.errors import pluralize
from fullmatch.reproduce import provenance
from fullmatch.reproduce.entry import LedgerCurve
from fullmatch.reproduce.figures.runs import FigureRun


class CurveBand(NamedTuple):
    """A metric over training: mean and standard deviation over seeds, at the same steps."""

    steps: tuple[int, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]  # of the population, as in the tables; 0 with one run


@dataclass(frozen=True)
class RunGroup:
    """One line of a figure."""

    runs: tuple[FigureRun, ...]

    @property
    def label(self) -> str:
        count = len(self.runs)
        return self.runs[0].label + (f", {pluralize(count, 'seed')}" if count > 1 else "")

    def has(self, metric: str) -> bool:
        return all(metric in run.curves for run in self.runs)

    def band(
        self, metric: str, prepare: Callable[[LedgerCurve], LedgerCurve] = lambda curve: curve
    ) -> CurveBand:
        return join_curves([prepare(run.curves[metric]) for run in self.runs])


def join_curves(curves: Sequence[LedgerCurve]) -> CurveBand:
    """Mean and deviation at steps that every curve covers; they are interpolated there."""
    import numpy as np

    first = max(curve.steps[0] for curve in curves)
    shortest = min((curve.steps for curve in curves), key=lambda steps: steps[-1])
    steps = tuple(step for step in shortest if step >= first) or shortest[-1:]
    rows = [np.interp(steps, curve.steps, curve.values) for curve in curves]
    columns = list(zip(*(row.tolist() for row in rows), strict=True))
    return CurveBand(
        steps,
        tuple(statistics.fmean(values) for values in columns),
        tuple(statistics.pstdev(values) for values in columns),
    )


def group_seeds(runs: Sequence[FigureRun]) -> list[RunGroup]:
    """One group per set of settings; a run of a seed that its group has already stays alone."""
    groups: list[list[FigureRun]] = []
    for run in runs:
        for group in groups:
            new = all(run.config.seed != other.config.seed for other in group)
            if new and settings_of(run) == settings_of(group[0]):
                group.append(run)
                break
        else:
            groups.append([run])
    return [RunGroup(tuple(group)) for group in groups]


def settings_of(run: FigureRun) -> str:
    """A hash of everything that decides the result, apart from the seed."""
    return provenance.identity(provenance.table_of(replace(run.config, seed=0)))


def make_labels_unique(groups: Sequence[RunGroup]) -> None:
    """Add what differs to every label that several groups share: their steps, or their names."""
    counts = Counter(group.runs[0].label for group in groups)
    for label in [label for label, count in counts.items() if count > 1]:
        same = [group for group in groups if group.runs[0].label == label]
        steps = {group.runs[0].config.training.steps for group in same}
        for group in same:
            first = group.runs[0]
            name = first.path.resolve().name.removesuffix(".json")
            count = first.config.training.steps
            detail = f", {count:,} steps" if len(steps) == len(same) else f" ({name})"
            for run in group.runs:
                run.label = label + detail
