"""Curves over training steps: accuracy, loss, and the use of unlabeled pictures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from fullmatch.pages.palette import LIGHT, SERIES
from fullmatch.reports.chart import (
    Chart,
    add_legend_above,
    chart_style,
    format_as_percent,
    make_panel,
    shorten,
)
from fullmatch.storage.runs import StepCurve, StoredRun

LINE_STYLES = ("-", (0, (5, 1.6)), (0, (1.2, 1.4)), (0, (6, 1.5, 1.2, 1.5)))


@dataclass(frozen=True)
class LabeledCurve:
    """A curve with its label in the legend."""

    label: str
    curve: StepCurve
    number: int = 0  # decides color and dashes, the same for a run or role in every chart


def draw_curves(
    title: str, y_label: str, curves: Sequence[LabeledCurve], *, fraction: bool = False
) -> Chart | None:
    """Curves over training steps; None when there is nothing to draw."""
    curves = [each for each in curves if np.isfinite(each.curve.values).any()]
    # A head that is fitted at once takes a single step, which makes no curve.
    if not curves or max(each.curve.steps[-1] for each in curves) <= 1:
        return None
    with chart_style():
        figure, axes = make_panel()
        for each in curves:
            plot_curve(axes, each)
        axes.set_xlabel("training step")
        axes.set_ylabel(y_label)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_xlim(left=0)
        if fraction:
            format_as_percent(axes)
            axes.set_ylim(-0.02, 1.02)
        elif min(np.nanmin(each.curve.values) for each in curves) >= 0:
            axes.set_ylim(bottom=0)
        add_legend_above(axes, [len(each.label) for each in curves])
    ends = (f"{each.label} {format_value(each.curve.values[-1], fraction)}" for each in curves)
    return Chart(figure, title, f"At the last step: {'; '.join(ends)}.")


def plot_curve(axes: Axes, labeled: LabeledCurve) -> None:
    curve = labeled.curve.thinned()
    axes.plot(
        curve.steps,
        curve.values,
        label=shorten(labeled.label, 28),
        color=LIGHT[SERIES[labeled.number % len(SERIES)]],
        linestyle=LINE_STYLES[labeled.number % len(LINE_STYLES)],
        marker="o" if len(curve.steps) == 1 else None,
    )


def format_value(value: float, fraction: bool) -> str:
    return f"{100 * value:.1f} %" if fraction else f"{value:.3g}"


def draw_accuracy(run: StoredRun) -> Chart | None:
    curves = [
        LabeledCurve("averaged model", run.accuracy("teacher"), 0),
        LabeledCurve("student", run.accuracy("student"), 1),
    ]
    if run.baseline:
        curves.append(LabeledCurve("labels only", run.baseline.accuracy("teacher"), 2))
    return draw_curves("Test accuracy", "test accuracy", curves, fraction=True)


def draw_loss(run: StoredRun) -> Chart | None:
    curves = [
        LabeledCurve("total loss", run.metric("loss"), 0),
        LabeledCurve("labeled part", run.metric("supervised"), 1),
    ]
    if run.baseline:
        curves.append(LabeledCurve("labels only", run.baseline.metric("loss"), 2))
    return draw_curves("Loss", "loss", curves)


def draw_pseudo_labels(run: StoredRun) -> Chart | None:
    curves = [
        LabeledCurve("used", run.metric("selected"), 0),
        LabeledCurve("correct pseudo-labels", run.judged_metric("pseudo_label_accuracy"), 1),
        LabeledCurve("correct negatives", run.judged_metric("negative_accuracy"), 2),
    ]
    return draw_curves("Use of unlabeled pictures", "fraction", curves, fraction=True)


def draw_negative_labels(run: StoredRun) -> Chart | None:
    curves = [
        LabeledCurve("k", run.metric("k"), 0),
        LabeledCurve("ruled out per picture", run.metric("negatives"), 1),
    ]
    return draw_curves("Classes ruled out", "classes", curves)


def draw_comparisons(names: Sequence[str], runs: Sequence[StoredRun]) -> list[Chart]:
    """The same curves of several runs, one chart per metric."""

    def draw(
        title: str, y_label: str, curve: Callable[[StoredRun], StepCurve], fraction: bool = True
    ) -> Chart | None:
        curves = label_curves(names, [curve(run) for run in runs])
        return draw_curves(title, y_label, curves, fraction=fraction)

    charts = [
        draw("Test accuracy", "test accuracy", lambda run: run.accuracy("teacher")),
        draw("Loss", "loss", lambda run: run.metric("loss"), fraction=False),
        draw("Unlabeled pictures used", "fraction", lambda run: run.metric("selected")),
        draw(
            "Correct pseudo-labels",
            "fraction",
            lambda run: run.judged_metric("pseudo_label_accuracy"),
        ),
    ]
    return [chart for chart in charts if chart]


def label_curves(names: Sequence[str], curves: Sequence[StepCurve]) -> list[LabeledCurve]:
    pairs = enumerate(zip(names, curves, strict=True))
    return [LabeledCurve(name, curve, number) for number, (name, curve) in pairs]


def save_accuracy_png(
    runs: Sequence[StoredRun], path: Path, names: Sequence[str] | None = None
) -> None:
    """Test accuracy of the runs in one PNG file; `names` default to the algorithms."""
    names = [run.algorithm for run in runs] if names is None else names
    curves = label_curves(names, [run.accuracy("teacher") for run in runs])
    chart = draw_curves("Test accuracy", "test accuracy", curves, fraction=True)
    if chart is None:
        raise ValueError("runs: none was evaluated during training, expected at least one")
    chart.save_png(path)
