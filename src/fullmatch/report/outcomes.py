"""How the test images came out: confusions, calibration, and the accuracy of each class."""

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import to_rgb

from fullmatch.pages.palette import LIGHT
from fullmatch.report.drawing import (
    SIZE,
    Drawing,
    in_percent,
    legend_above,
    panel,
    shortened,
    styled,
)
from fullmatch.storage.runs import Predictions

NAMED = 20  # classes that still have room for their names
FIRM = 5  # images that a bin needs for its accuracy to mean something


def confusion(counts: Sequence[Sequence[int]], classes: Sequence[str]) -> Drawing:
    """Rows are true classes; the darker a cell, the larger its share of the row."""
    table = np.array(counts, dtype=np.float64)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    few = len(classes) <= NAMED
    # One colour, more or less transparent: it stands on a light page and on a dark one.
    pixels = np.empty((*shares.shape, 4))
    pixels[..., :3] = to_rgb(LIGHT["one"])
    pixels[..., 3] = 0.65 * shares**0.5
    with styled():
        figure, axes = panel((4.8, 4.6))
        axes.grid(False)
        axes.imshow(pixels, interpolation="none")
        axes.set_xlabel("predicted")
        axes.set_ylabel("true")
        names = [shortened(name, 12) for name in classes] if few else []
        upright = max(map(len, names), default=0) > 3
        axes.set_xticks(range(len(names)), names, rotation=90 if upright else 0)
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0)
        for row, column in np.argwhere(table > 0) if few else ():
            axes.text(
                column,
                row,
                f"{int(table[row, column])}",
                ha="center",
                va="center",
                fontsize=9 if len(classes) <= 12 else 7,
            )
    right = np.trace(table) / max(table.sum(), 1)
    words = f"{len(classes)} classes; {100 * right:.1f} % of the images lie on the diagonal."
    return Drawing(figure, "Confusion matrix", words)


def reliability(predictions: Predictions, error: float) -> Drawing | None:
    """Is it right as often as it says? Points on the diagonal mean yes; None with few images."""
    bins = predictions.reliability()
    firm = [(confidence, right) for confidence, right, count in bins if count >= FIRM]
    if len(firm) < 2:
        return None
    total = len(predictions.labels)
    with styled():
        figure, axes = panel()
        axes.bar(
            [confidence for confidence, _, _ in bins],
            [count / total for _, _, count in bins],
            width=0.035,
            color=LIGHT["rule"],
            label="share of images",
        )
        axes.plot([0, 1], [0, 1], color=LIGHT["faint"], linewidth=1, linestyle=(0, (4, 3)))
        axes.plot(
            [confidence for confidence, _ in firm],
            [right for _, right in firm],
            marker="o",
            markersize=4.5,
            color=LIGHT["one"],
            label="how often right",
        )
        axes.set_xlabel("how sure it says it is")
        axes.set_xlim(0, 1.02)
        axes.set_ylim(0, 1.02)
        in_percent(axes)
        in_percent(axes, "x")
        legend_above(axes, [15, 15])
    mean = 100 * float(predictions.confidence.mean())
    return Drawing(
        figure,
        "How sure it is, and how often right",
        f"On average it says it is {mean:.1f} % sure and is right "
        f"{100 * float(predictions.right.mean()):.1f} % of the time; "
        f"expected calibration error {100 * error:.1f} points.",
    )


def per_class(
    shares: Sequence[float | None], classes: Sequence[str], overall: float
) -> Drawing | None:
    """The weakest classes first, as many as have room."""
    known = [
        (share, name) for share, name in zip(shares, classes, strict=True) if share is not None
    ]
    rows = sorted(known, key=lambda row: row[0])[:NAMED]
    if not rows:
        return None
    with styled():
        figure, axes = panel((SIZE[0], 1.0 + 0.24 * len(rows)))
        axes.grid(axis="y", visible=False)
        axes.barh(range(len(rows)), [share for share, _ in rows], color=LIGHT["one"], height=0.62)
        axes.axvline(overall, color=LIGHT["two"], linewidth=1.4, linestyle=(0, (4, 2)))
        axes.set_yticks(range(len(rows)), [shortened(name) for _, name in rows])
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(0, 1.02)
        axes.set_xlabel("test accuracy; dashed: over all classes")
        in_percent(axes, "x")
    weakest, strongest = rows[0], rows[-1]
    words = (
        f"From {weakest[1]} with {100 * weakest[0]:.1f} % "
        f"to {strongest[1]} with {100 * strongest[0]:.1f} %."
    )
    return Drawing(figure, "Accuracy by class", words)
