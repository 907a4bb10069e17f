"""Figures of metrics over training."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fullmatch.reproduce.entry import LedgerCurve
from fullmatch.reproduce.figures.groups import CurveBand, group_seeds
from fullmatch.reproduce.figures.runs import FigureRun, describe_runs, runs_with
from fullmatch.reproduce.figures.style import COLORS, add_title, canvas, format_steps_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EARLY = 0.1  # fraction of training in which accuracy rises steeply
POINTS = 60  # of a smoothed curve, at most
BAND = 0.2  # opacity of one standard deviation


def pseudo_labels(runs: Sequence[FigureRun]) -> "Figure":
    """The share of unlabeled images that are confident enough for a pseudo-label."""
    figure, axes = canvas()
    shown = runs_with(runs, "selected", "a method with pseudo-labels")
    for group, color in zip(group_seeds(shown), COLORS, strict=False):
        draw_band(axes, in_percent(group.band("selected", smooth)), color, group.label)
    label_axes(axes, shown)
    axes.set_ylabel("images with a pseudo-label (%)")
    axes.set_ylim(bottom=0)
    return figure


def accuracy(runs: Sequence[FigureRun]) -> "Figure":
    """The averaged model on the test images; the y axis leaves out the first steep rise."""
    figure, axes = canvas()
    shown = runs_with(runs, "teacher.top1", "a benchmark")
    later: list[float] = []
    for group, color in zip(group_seeds(shown), COLORS, strict=False):
        band = in_percent(group.band("teacher.top1"))
        draw_band(axes, band, color, f"{group.label}: {last_value(band)}")
        later += later_values(band)
    label_axes(axes, shown)
    axes.legend(loc="lower right")
    axes.set_ylabel("test accuracy (%)")
    axes.set_ylim(10 * (min(later) // 10), min(100.5, axes.get_ylim()[1]))
    return figure


def last_value(band: CurveBand) -> str:
    spread = f" ± {band.deviation[-1]:.1f}" if any(band.deviation) else ""
    return f"{band.mean[-1]:.1f}{spread}"


def later_values(band: CurveBand) -> list[float]:
    """The values after the first steep rise."""
    early = EARLY * band.steps[-1]
    return [value for step, value in zip(band.steps, band.mean, strict=True) if step > early]


def negatives(runs: Sequence[FigureRun]) -> "Figure":
    """The number of negatives per image, and how many of them are right."""
    figure, (upper, lower) = canvas(2, 1, height=5.2, sharex=True)
    shown = runs_with(runs, "negatives", "fullmatch or fullflex")
    for group, color in zip(group_seeds(shown), COLORS, strict=False):
        draw_band(upper, group.band("negatives", smooth), color, group.label)
        if group.has("negative_accuracy"):
            draw_band(lower, in_percent(group.band("negative_accuracy", smooth)), color)
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
    for group, color in zip(group_seeds(shown), COLORS, strict=False):
        for top, dash in ((5, "-"), (9, "--")):
            if group.has(f"unlabeled_top{top}"):
                band = in_percent(group.band(f"unlabeled_top{top}", smooth))
                draw_band(axes, band, color, f"{group.label}, top-{top}", dash)
    label_axes(axes, shown)
    axes.set_ylabel("true class in the top 5 or 9 (%)")
    axes.set_ylim(top=100.5)
    return figure


def draw_band(
    axes: "Axes", band: CurveBand, color: str, label: str | None = None, dash: str = "-"
) -> None:
    """The mean as a line, and one standard deviation around it where there are several seeds."""
    axes.plot(band.steps, band.mean, dash, color=color, label=label)
    if any(band.deviation):
        pairs = list(zip(band.mean, band.deviation, strict=True))
        low, high = [mean - d for mean, d in pairs], [mean + d for mean, d in pairs]
        axes.fill_between(band.steps, low, high, color=color, alpha=BAND, linewidth=0)


def smooth(curve: LedgerCurve) -> LedgerCurve:
    """Means of neighboring points, so that the noise of single batches does not hide the trend."""
    steps, values = curve.steps, curve.values
    width = -(-len(steps) // POINTS)
    starts = range(0, len(steps), width)
    parts = [(steps[at : at + width], values[at : at + width]) for at in starts]
    return LedgerCurve(
        tuple(part[-1] for part, _ in parts), tuple(sum(part) / len(part) for _, part in parts)
    )


def in_percent(band: CurveBand) -> CurveBand:
    return CurveBand(
        band.steps,
        tuple(100 * value for value in band.mean),
        tuple(100 * value for value in band.deviation),
    )


def label_axes(axes: "Axes", runs: Sequence[FigureRun]) -> None:
    """Title, legend and the axis of steps."""
    add_title(axes, describe_runs(runs))
    format_steps_axis(axes)
    axes.legend(loc="best")
