"""Figures of metrics over training."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fullmatch.reproduce.entry import LedgerCurve
from fullmatch.reproduce.figures.runs import FigureRun, describe_runs, runs_with
from fullmatch.reproduce.figures.style import COLORS, canvas, format_steps_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EARLY = 0.1  # fraction of training in which accuracy rises steeply
POINTS = 60  # of a smoothed curve, at most


def pseudo_labels(runs: Sequence[FigureRun]) -> "Figure":
    """The share of unlabeled images that are confident enough for a pseudo-label."""
    figure, axes = canvas()
    shown = runs_with(runs, "selected", "a method with pseudo-labels")
    for run, color in zip(shown, COLORS, strict=False):
        axes.plot(*in_percent(smooth(run.curves["selected"])), color=color, label=run.label)
    label_axes(axes, shown)
    axes.set_ylabel("images with a pseudo-label (%)")
    axes.set_ylim(bottom=0)
    return figure


def accuracy(runs: Sequence[FigureRun]) -> "Figure":
    """The averaged model on the test images; the y axis leaves out the first steep rise."""
    figure, axes = canvas()
    shown = runs_with(runs, "teacher.top1", "a benchmark")
    later: list[float] = []
    for run, color in zip(shown, COLORS, strict=False):
        steps, percent = in_percent(run.curves["teacher.top1"])
        axes.plot(steps, percent, color=color, label=f"{run.label}: {percent[-1]:.1f}")
        later += [y for x, y in zip(steps, percent, strict=True) if x > EARLY * steps[-1]]
    label_axes(axes, shown)
    axes.legend(loc="lower right")
    axes.set_ylabel("test accuracy (%)")
    axes.set_ylim(bottom=10 * (min(later) // 10))
    return figure


def negatives(runs: Sequence[FigureRun]) -> "Figure":
    """The number of negatives per image, and how many of them are right."""
    figure, (upper, lower) = canvas(2, 1, height=5.2, sharex=True)
    shown = runs_with(runs, "negatives", "fullmatch or fullflex")
    for run, color in zip(shown, COLORS, strict=False):
        curve = smooth(run.curves["negatives"])
        upper.plot(curve.steps, curve.values, color=color, label=run.label)
        if "negative_accuracy" in run.curves:
            lower.plot(*in_percent(smooth(run.curves["negative_accuracy"])), color=color)
    label_axes(upper, shown)
    upper.set_xlabel("")
    upper.set_ylabel("negatives per image")
    upper.set_ylim(bottom=0)
    format_steps_axis(lower)
    lower.set_ylabel("right negatives (%)")
    lower.set_ylim(top=100.3)
    return figure


def top_k(runs: Sequence[FigureRun]) -> "Figure":
    """How often the true class of an unlabeled image is among the top five or nine."""
    figure, axes = canvas()
    shown = runs_with(
        runs, "unlabeled_top5", "a method with pseudo-labels and more than five classes"
    )
    for run, color in zip(shown, COLORS, strict=False):
        for top, dash in ((5, "-"), (9, "--")):
            if curve := run.curves.get(f"unlabeled_top{top}"):
                name = f"{run.label}, top-{top}"
                axes.plot(*in_percent(smooth(curve)), dash, color=color, label=name)
    label_axes(axes, shown)
    axes.set_ylabel("true class in the top 5 or 9 (%)")
    axes.set_ylim(top=100.5)
    return figure


def smooth(curve: LedgerCurve) -> LedgerCurve:
    """Means of neighboring points, so that the noise of single batches does not hide the trend."""
    steps, values = curve.steps, curve.values
    width = -(-len(steps) // POINTS)
    starts = range(0, len(steps), width)
    parts = [(steps[at : at + width], values[at : at + width]) for at in starts]
    return LedgerCurve(
        tuple(part[-1] for part, _ in parts), tuple(sum(part) / len(part) for _, part in parts)
    )


def in_percent(curve: LedgerCurve) -> tuple[tuple[int, ...], list[float]]:
    """Steps, and values as percentages."""
    return curve.steps, [100 * value for value in curve.values]


def label_axes(axes: "Axes", runs: Sequence[FigureRun]) -> None:
    """Title, legend and the axis of steps."""
    axes.set_title(describe_runs(runs), loc="left")
    format_steps_axis(axes)
    axes.legend(loc="best")
