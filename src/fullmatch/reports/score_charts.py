"""Charts of the test scores: confusion matrix, calibration, and recall of each class."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from fullmatch.pages.palette import LIGHT
from fullmatch.reports.chart import (
    SIZE,
    Chart,
    add_legend_above,
    chart_style,
    format_as_percent,
    make_panel,
    shorten,
)
from fullmatch.storage.predictions import Predictions

MOST_NAMES = 20  # classes that have room for their names
LEAST_IN_BIN = 5  # images that a bin needs for its accuracy to mean something


def draw_confusion(counts: Sequence[Sequence[int]], classes: Sequence[str]) -> Chart:
    """Rows are true classes; the darker a cell, the larger its fraction of the row."""
    table = np.array(counts, dtype=np.float64)
    with chart_style():
        figure, axes = make_panel((4.8, 4.6))
        axes.grid(False)
        axes.imshow(shade(table), interpolation="none")
        axes.set_xlabel("predicted")
        axes.set_ylabel("true")
        named = len(classes) <= MOST_NAMES
        names = [shorten(name, 12) for name in classes] if named else []
        vertical = max(map(len, names), default=0) > 3
        axes.set_xticks(range(len(names)), names, rotation=90 if vertical else 0)
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0)
        if named:
            write_counts(axes, table)
    correct = np.trace(table) / max(table.sum(), 1)
    summary = f"{len(classes)} classes; {100 * correct:.1f} % of the pictures are on the diagonal."
    return Chart(figure, "Confusion matrix", summary)


def shade(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """One color, more or less transparent, so that it fits light and dark pages."""
    fractions = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    pixels = np.empty((*fractions.shape, 4))
    pixels[..., :3] = to_rgb(LIGHT["one"])
    pixels[..., 3] = 0.65 * fractions**0.5
    return pixels


def write_counts(axes: Axes, table: NDArray[np.float64]) -> None:
    size = 9 if len(table) <= 12 else 7
    for row, column in np.argwhere(table > 0):
        count = f"{int(table[row, column])}"
        axes.text(column, row, count, ha="center", va="center", fontsize=size)


def draw_reliability(predictions: Predictions, ece: float) -> Chart | None:
    """Accuracy over confidence, which is a diagonal if calibrated; None with few images."""
    bins = predictions.reliability()
    points = [(confidence, right) for confidence, right, count in bins if count >= LEAST_IN_BIN]
    if len(points) < 2:
        return None
    total = len(predictions.labels)
    with chart_style():
        figure, axes = make_panel()
        axes.bar(
            [confidence for confidence, _, _ in bins],
            [count / total for _, _, count in bins],
            width=0.035,
            color=LIGHT["rule"],
            label="fraction of pictures",
        )
        axes.plot([0, 1], [0, 1], color=LIGHT["faint"], linewidth=1, linestyle=(0, (4, 3)))
        axes.plot(*zip(*points, strict=True), "o-", ms=4.5, color=LIGHT["one"], label="accuracy")
        axes.set_xlabel("confidence")
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        format_as_percent(axes)
        format_as_percent(axes, "x")
        add_legend_above(axes, [15, 15])
    confidence = 100 * float(predictions.confidence.mean())
    accuracy = 100 * float(predictions.right.mean())
    summary = (
        f"Mean confidence {confidence:.1f} %, accuracy {accuracy:.1f} %; "
        f"expected calibration error {100 * ece:.1f} points."
    )
    return Chart(figure, "Confidence and accuracy", summary)


def draw_class_recall(
    recalls: Sequence[float | None], classes: Sequence[str], overall: float
) -> Chart | None:
    """The weakest classes first, as many as fit; `overall` is the accuracy."""
    measured = [
        (recall, name) for recall, name in zip(recalls, classes, strict=True) if recall is not None
    ]
    rows = sorted(measured, key=lambda row: row[0])[:MOST_NAMES]
    if not rows:
        return None
    with chart_style():
        figure, axes = make_panel((SIZE[0], 1.0 + 0.24 * len(rows)))
        axes.grid(axis="y", visible=False)
        axes.barh(range(len(rows)), [bar for bar, _ in rows], color=LIGHT["one"], height=0.62)
        axes.axvline(overall, color=LIGHT["two"], linewidth=1.4, linestyle=(0, (4, 2)))
        axes.set_yticks(range(len(rows)), [shorten(name) for _, name in rows])
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.02)
        axes.set_xlabel("recall; dashed: accuracy over all classes")
        format_as_percent(axes, "x")
    (lowest, weakest), (highest, strongest) = rows[0], rows[-1]
    summary = f"From {weakest} with {100 * lowest:.1f} % to {strongest} with {100 * highest:.1f} %."
    return Chart(figure, "Recall by class", summary)
