"""Draw the pictures of the pages on concepts: `python docs/images/draw_concepts.py`."""

import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from scipy.ndimage import rotate
from sklearn.datasets import load_digits

from fullmatch.evaluation.intervals import wilson_interval

FOLDER = Path(__file__).parent
LEDGER = FOLDER.parent / "results" / "runs"
BLUE, ORANGE, GRAY, GREEN, RED = "#1f6fb4", "#d9822b", "#9a9a9a", "#2e8b57", "#c0392b"
DIGITS = [str(digit) for digit in range(10)]
WIDTH = 5.4  # inches: on a phone, which shows two thirds of it, the words are still readable


def arrow(figure: Figure, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes = figure.add_axes((0, 0, 1, 1), zorder=-1)
    axes.axis("off")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "lw": 1.6, "color": "#444"})


def show_image(figure: Figure, place: tuple[float, float], image: np.ndarray, title: str) -> None:
    axes = figure.add_axes((*place, 0.22, 0.23))
    axes.imshow(image, cmap="gray_r", vmin=0, vmax=16)
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=11)


def show_bars(axes: Axes, values: list[float], colors: list[str], title: str) -> None:
    axes.bar(DIGITS, values, color=colors)
    axes.set(ylim=(0, 1.05), yticks=[0, 0.5, 1])
    axes.set_title(title, fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)


def draw_pseudo_label() -> Figure:
    """One unlabeled image: its weak view gives the label, its strong view learns it."""
    figure = plt.figure(figsize=(WIDTH, 5.2))
    image = load_digits().images[13]
    strong = rotate(image, 25, reshape=False, mode="constant", order=1)
    strong[4:7, 1:4] = 8
    show_image(figure, (0.02, 0.71), np.roll(image, 1, axis=1), "weak view")
    show_image(figure, (0.02, 0.375), image, "unlabeled image")
    show_image(figure, (0.02, 0.03), strong, "strong view")
    sure = [0.002, 0.003, 0.005, 0.97, 0.001, 0.008, 0.001, 0.002, 0.005, 0.003]
    unsure = [0.02, 0.03, 0.09, 0.46, 0.02, 0.14, 0.03, 0.05, 0.10, 0.06]
    bars = figure.add_axes((0.38, 0.72, 0.33, 0.22))
    show_bars(bars, sure, [ORANGE if d == "3" else GRAY for d in DIGITS], "prediction")
    bars.axhline(0.95, color=RED, lw=1, ls="--")
    bars.text(9.6, 0.9, "threshold\n0.95", color=RED, ha="right", va="top", fontsize=9.5)
    bars = figure.add_axes((0.38, 0.05, 0.33, 0.22))
    show_bars(bars, unsure, [BLUE if d == "3" else GRAY for d in DIGITS], "prediction, learning")
    figure.text(0.875, 0.83, 'pseudo-\nlabel "3"', ha="center", va="center", color=ORANGE,
                fontsize=12)  # fmt: skip
    figure.text(0.855, 0.49, "no\ngradient", ha="right", va="center", fontsize=10)
    figure.text(0.875, 0.15, "cross-entropy\nwith it", ha="center", va="center", fontsize=11)
    for start, end in [
        ((0.13, 0.655), (0.13, 0.705)), ((0.13, 0.37), (0.13, 0.315)),
        ((0.25, 0.825), (0.32, 0.825)), ((0.25, 0.145), (0.32, 0.145)),
        ((0.72, 0.83), (0.775, 0.83)), ((0.72, 0.15), (0.75, 0.15)),
        ((0.875, 0.765), (0.875, 0.21)),
    ]:  # fmt: skip
        arrow(figure, start, end)
    return figure


def draw_two_losses() -> Figure:
    """What EML and ANL do to the classes of a selected and of an ambiguous image."""
    figure, (left, right) = plt.subplots(2, 1, figsize=(WIDTH, 5.4))
    k = 4
    selected = [0.01, 0.02, 0.06, 0.66, 0.02, 0.12, 0.01, 0.02, 0.06, 0.02]
    ambiguous = [0.01, 0.02, 0.08, 0.38, 0.01, 0.34, 0.01, 0.02, 0.11, 0.02]
    for axes, values, sure in ((left, selected, True), (right, ambiguous, False)):
        order = np.argsort(values)[::-1]
        colors = [GRAY] * 10
        for place, number in enumerate(order[:k]):
            colors[number] = BLUE if place == 0 and sure else ORANGE
        title = (
            "selected image: cross-entropy, EML and ANL" if sure else "ambiguous image: ANL only"
        )
        show_bars(axes, values, colors, title)
        for number in order[k:]:
            axes.annotate(
                "", (number, values[number] + 0.03), (number, values[number] + 0.17),
                arrowprops={"arrowstyle": "->", "color": "#555"},
            )  # fmt: skip
    left.annotate("", (3, 0.86), (3, 0.68), arrowprops={"arrowstyle": "->", "color": BLUE, "lw": 2})
    mean = (0.12 + 0.06 + 0.06) / 3
    left.hlines(mean, 1.5, 8.5, color=ORANGE, ls="--", lw=1.2)
    left.text(5, 0.42, "EML: the others of the top k\nbecome equal", color=ORANGE, fontsize=11)
    right.text(3.2, 0.72, "ANL: classes after the top k\nare ruled out", color="#555", fontsize=11)
    figure.supxlabel("class of the strong view; the top k = 4 are in color", fontsize=11)
    figure.tight_layout()
    return figure


def draw_honest_accuracy() -> Figure:
    """The last accuracy with its interval, and the best one, which the test set has chosen."""
    (path,) = LEDGER.glob("digits-40-fixmatch-0-1600-*.json")
    curve = json.loads(path.read_text(encoding="utf-8"))["curves"]["teacher.top1"]
    steps, values = np.array(curve)
    last, best = values[-1], values.argmax()
    low, high = wilson_interval(float(last), 500)
    figure, axes = plt.subplots(figsize=(WIDTH, 3.5))
    axes.axhspan(100 * low, 100 * high, color=BLUE, alpha=0.15, lw=0)
    axes.plot(steps, 100 * values, color="#555", lw=1.6)
    axes.plot(steps[-1], 100 * last, "o", color=BLUE, ms=9)
    axes.plot(steps[best], 100 * values[best], "o", color=RED, ms=9)
    axes.annotate(
        f"best, chosen on the test set: {100 * values[best]:.1f} %",
        (steps[best], 100 * values[best]), (steps[best] + 60, 99.2),
        color=RED, arrowprops={"arrowstyle": "-", "color": RED},
    )  # fmt: skip
    text = f"last: {100 * last:.1f} %, 95 % interval {100 * low:.1f} to {100 * high:.1f}"
    axes.text(steps[-1], 100 * low + 0.15, text, color=BLUE, ha="right", va="bottom")
    axes.set(xlabel="training step", ylabel="test accuracy, %", ylim=(92, 100), xlim=(300, 1640))
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def draw_exact_resume() -> Figure:
    """A run that is killed and resumed takes the same steps as one that is not."""
    figure = plt.figure(figsize=(WIDTH, 3.2))
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    axes.axis("off")
    axes.set(xlim=(-1.9, 10.1), ylim=(0.1, 4.3))

    def box(x: float, y: float, text: str, color: str, face: str = "white") -> None:
        axes.add_patch(
            FancyBboxPatch((x + 0.06, y), 0.88, 0.6, boxstyle="round,pad=0,rounding_size=0.1",
                           fc=face, ec=color, lw=1.6)
        )  # fmt: skip
        axes.text(x + 0.5, y + 0.3, text, ha="center", va="center", fontsize=10)

    axes.text(-0.1, 3.3, "not\ninterrupted", ha="right", va="center", fontsize=10)
    axes.text(-0.1, 1.9, "killed", ha="right", va="center", fontsize=10)
    axes.text(-0.1, 0.5, "resumed", ha="right", va="center", fontsize=10)
    for step in range(10):
        box(step, 3.0, str(step), BLUE)
    for step in range(6):
        box(step, 1.6, str(step), BLUE, "#cfe3f5" if step == 3 else "white")
    axes.text(6.3, 1.9, "killed after step 5", color=RED, va="center", fontsize=10)
    axes.text(3.5, 1.38, "checkpoint", ha="center", va="top", fontsize=10, color=BLUE)
    for step in range(4, 10):
        box(step, 0.2, str(step), GREEN)
    axes.annotate(
        "", (4.0, 0.5), (3.5, 1.1), arrowprops={"arrowstyle": "->", "color": "#444", "lw": 1.4}
    )
    axes.annotate(
        "", (9.5, 0.95), (9.5, 2.9), arrowprops={"arrowstyle": "<->", "color": "#444", "lw": 1.4}
    )
    axes.text(9.4, 2.35, "same bits", ha="right", va="center", fontsize=11)
    axes.text(4.1, 3.85, "image order, learning rate, random numbers = f(seed, step)",
              ha="center", fontsize=10)  # fmt: skip
    return figure


PICTURES = {
    "pseudo-label": draw_pseudo_label,
    "two-losses": draw_two_losses,
    "honest-accuracy": draw_honest_accuracy,
    "exact-resume": draw_exact_resume,
}


def draw(folder: Path = FOLDER) -> None:
    """Write every picture as `concept-NAME.svg`, the same bytes each time."""
    with plt.rc_context({"svg.hashsalt": "fullmatch", "font.size": 10}):
        for name, make in PICTURES.items():
            figure = make()
            figure.savefig(folder / f"concept-{name}.svg", metadata={"Date": None})
            plt.close(figure)


if __name__ == "__main__":
    draw()
