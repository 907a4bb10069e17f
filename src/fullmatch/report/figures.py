"""The curves of a report: accuracy, loss, and the use of unlabeled images over training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.ticker import EngFormatter

from fullmatch.pages.palette import LIGHT, SERIES
from fullmatch.report.drawing import Drawing, in_percent, legend_above, panel, shortened, styled
from fullmatch.storage.runs import Curve, Run

STYLES = ("-", (0, (5, 1.6)), (0, (1.2, 1.4)), (0, (6, 1.5, 1.2, 1.5)))


@dataclass(frozen=True)
class Line:
    """One curve and what it is called; colour and dashes tell it from the others."""

    label: str
    curve: Curve
    number: int = 0  # of the run or role, so that it looks the same in every drawing


def over_steps(
    title: str, axis: str, lines: Sequence[Line], *, share: bool = False
) -> Drawing | None:
    """Curves over training steps; None when there is nothing to draw."""
    lines = [line for line in lines if np.isfinite(line.curve.values).any()]
    if not lines:
        return None
    with styled():
        figure, axes = panel()
        for line in lines:
            curve = line.curve.thinned()
            axes.plot(
                curve.steps,
                curve.values,
                label=shortened(line.label, 28),
                color=LIGHT[SERIES[line.number % len(SERIES)]],
                linestyle=STYLES[line.number % len(STYLES)],
                marker="o" if len(curve.steps) == 1 else None,
            )
        axes.set_xlabel("training step")
        axes.set_ylabel(axis)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_xlim(left=0)
        if share:
            in_percent(axes)
            axes.set_ylim(-0.02, 1.02)
        elif min(np.nanmin(line.curve.values) for line in lines) >= 0:
            axes.set_ylim(bottom=0)
        legend_above(axes, [len(line.label) for line in lines])
    ends = (f"{line.label} {number(line.curve.values[-1], share)}" for line in lines)
    return Drawing(figure, title, f"At the last step: {'; '.join(ends)}.")


def number(value: float, share: bool) -> str:
    return f"{100 * value:.1f} %" if share else f"{value:.3g}"


def accuracy(run: Run) -> Drawing | None:
    alone = run.labels_only
    lines = [
        Line("averaged model", run.accuracy("teacher"), 0),
        Line("student", run.accuracy("student"), 1),
        *([Line("labels only", alone.accuracy("teacher"), 2)] if alone else []),
    ]
    return over_steps("Test accuracy", "test accuracy", lines, share=True)


def loss(run: Run) -> Drawing | None:
    alone = run.labels_only
    lines = [
        Line("whole loss", run.metric("loss"), 0),
        Line("labeled part", run.metric("supervised"), 1),
        *([Line("labels only", alone.metric("loss"), 2)] if alone else []),
    ]
    return over_steps("Loss", "loss", lines)


def use_of_unlabeled(run: Run) -> Drawing | None:
    lines = [
        Line("used", run.metric("selected"), 0),
        Line("pseudo-labels right", run.judged("pseudo_label_accuracy"), 1),
        Line("negatives right", run.judged("negative_accuracy"), 2),
    ]
    return over_steps("Use of the unlabeled images", "share", lines, share=True)


def ruled_out(run: Run) -> Drawing | None:
    lines = [
        Line("k", run.metric("k"), 0),
        Line("ruled out per image", run.metric("negatives"), 1),
    ]
    return over_steps("Classes ruled out", "classes", lines)


def overlaid(names: Sequence[str], runs: Sequence[Run]) -> list[Drawing]:
    """The same curves of several runs."""

    def lines(curves: Sequence[Curve]) -> list[Line]:
        named = enumerate(zip(names, curves, strict=True))
        return [Line(name, curve, at) for at, (name, curve) in named]

    drawings = [
        over_steps(
            "Test accuracy",
            "test accuracy",
            lines([run.accuracy("teacher") for run in runs]),
            share=True,
        ),
        over_steps("Loss", "loss", lines([run.metric("loss") for run in runs])),
        over_steps(
            "Unlabeled images used",
            "share",
            lines([run.metric("selected") for run in runs]),
            share=True,
        ),
        over_steps(
            "Pseudo-labels that are right",
            "share",
            lines([run.judged("pseudo_label_accuracy") for run in runs]),
            share=True,
        ),
    ]
    return [drawing for drawing in drawings if drawing]


def curves_png(runs: Sequence[Run], path: Path, names: Sequence[str] | None = None) -> None:
    """Test accuracy of the runs in one picture, for a README; named by algorithm if not else."""
    names = [run.algorithm for run in runs] if names is None else names
    curves = [
        Line(name, run.accuracy("teacher"), at)
        for at, (name, run) in enumerate(zip(names, runs, strict=True))
    ]
    drawing = over_steps("Test accuracy", "test accuracy", curves, share=True)
    if drawing is None:
        raise ValueError("runs: none was evaluated while training, expected at least one that was")
    drawing.png(path)
