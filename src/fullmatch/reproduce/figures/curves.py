"""Figures of what changes over training."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fullmatch.reproduce.figures.shown import Shown, about, having
from fullmatch.reproduce.figures.style import COLORS, canvas, steps_axis
from fullmatch.reproduce.ledger import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLIMB = 0.1  # share of a training in which accuracy rises steeply
SMOOTH = 60  # points that a noisy curve is brought down to


def pseudo_labels(runs: Sequence[Shown]) -> "Figure":
    """The share of unlabeled images that are confident enough for a pseudo-label."""
    figure, axes = canvas()
    shown = having(runs, "selected", "a method with pseudo-labels")
    for run, color in zip(shown, COLORS, strict=False):
        steps, values = means(run.curves["selected"])
        axes.plot(steps, [100 * value for value in values], color=color, label=run.label)
    finish(axes, shown)
    axes.set_ylabel("images with a pseudo-label (%)")
    axes.set_ylim(bottom=0)
    return figure


def accuracy(runs: Sequence[Shown]) -> "Figure":
    """The averaged model on the test images; the first climb, alike for all, is cut off below."""
    figure, axes = canvas()
    shown = having(runs, "teacher.top1", "a benchmark")
    later: list[float] = []
    for run, color in zip(shown, COLORS, strict=False):
        steps, values = run.curves["teacher.top1"]
        percent = [100 * value for value in values]
        axes.plot(steps, percent, color=color, label=f"{run.label}: {percent[-1]:.1f}")
        later += [y for x, y in zip(steps, percent, strict=True) if x > CLIMB * steps[-1]]
    finish(axes, shown)
    axes.legend(loc="lower right")
    axes.set_ylabel("test accuracy (%)")
    axes.set_ylim(bottom=10 * (min(later) // 10))
    return figure


def negatives(runs: Sequence[Shown]) -> "Figure":
    """How many negatives an image has, and how many of them are right."""
    figure, (upper, lower) = canvas(2, 1, height=5.2, sharex=True)
    shown = having(runs, "negatives", "fullmatch or fullflex")
    for run, color in zip(shown, COLORS, strict=False):
        upper.plot(*means(run.curves["negatives"]), color=color, label=run.label)
        if "negative_accuracy" in run.curves:
            steps, values = means(run.curves["negative_accuracy"])
            lower.plot(steps, [100 * value for value in values], color=color)
    finish(upper, shown)
    upper.set_xlabel("")
    upper.set_ylabel("negatives an image")
    upper.set_ylim(bottom=0)
    steps_axis(lower)
    lower.set_ylabel("of them right (%)")
    lower.set_ylim(top=100.3)
    return figure


def top_k(runs: Sequence[Shown]) -> "Figure":
    """How often the true class of an unlabeled image is among the best five or nine."""
    figure, axes = canvas()
    shown = having(runs, "unlabeled_top5", "a method with pseudo-labels and over five classes")
    for run, color in zip(shown, COLORS, strict=False):
        for top, dash in ((5, "-"), (9, "--")):
            if curve := run.curves.get(f"unlabeled_top{top}"):
                steps, values = means(curve)
                percent = [100 * value for value in values]
                name = f"{run.label}, top-{top}"
                axes.plot(steps, percent, dash, color=color, label=name)
    finish(axes, shown)
    axes.set_ylabel("true class among the best (%)")
    axes.set_ylim(top=100.5)
    return figure


def means(curve: Curve) -> Curve:
    """Neighbouring points averaged, so that the noise of single batches does not hide the rest."""
    steps, values = curve
    width = -(-len(steps) // SMOOTH)
    starts = range(0, len(steps), width)
    parts = [(steps[at : at + width], values[at : at + width]) for at in starts]
    return [[s[-1] for s, _ in parts], [sum(v) / len(v) for _, v in parts]]


def finish(axes: "Axes", runs: Sequence[Shown]) -> None:
    """Title, legend and the axis of steps."""
    axes.set_title(about(runs), loc="left")
    steps_axis(axes)
    axes.legend(loc="best")
