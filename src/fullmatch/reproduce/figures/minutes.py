"""Test accuracy over minutes: one color per method, dashed for the fast settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.reproduce.figures.curves import BAND
from fullmatch.reproduce.figures.style import (
    COLORS,
    add_title,
    canvas,
    figure_style,
    save_figure,
)
from fullmatch.reproduce.names import data_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fullmatch.reproduce.speed import MinutesCurve, SpeedLine

DASHES = {"paper": "-", "fast": "--"}
EARLY = 0.2  # share of the minutes in which accuracy rises steeply


def draw_minutes(folder: Path, lines: "Sequence[SpeedLine]", formats: Sequence[str]) -> list[Path]:
    """One figure per cell and device that has curves."""
    paths: list[Path] = []
    with figure_style():
        for stem, group in group_lines(lines).items():
            paths += save_figure(minutes(group), folder, stem, formats)
    return paths


def group_lines(lines: "Sequence[SpeedLine]") -> "dict[str, list[SpeedLine]]":
    """The lines of each figure, by the name of its file; minutes of other devices are others.

    Of a method and budget one line is drawn: that with the most folds, then the most steps.
    """
    groups: dict[str, dict[tuple[str, str], SpeedLine]] = {}
    for line in lines:
        if line.device is None or line.curve is None:
            continue
        kind = "cpu" if line.device.startswith("CPU") else line.device.replace(" ", "-").lower()
        chosen = groups.setdefault(f"speed-{line.cell}-{kind}", {})
        key = (line.row.name, line.budget)
        if key not in chosen or line.weight > chosen[key].weight:
            chosen[key] = line
    return {stem: list(chosen.values()) for stem, chosen in groups.items()}


def minutes(lines: "Sequence[SpeedLine]") -> "Figure":
    """Mean and deviation over folds; the y axis leaves out the first steep rise."""
    figure, axes = canvas()
    colors = dict(zip(dict.fromkeys(line.row.name for line in lines), COLORS, strict=False))
    several = len({line.steps for line in lines}) > 1
    later: list[float] = []
    for line in lines:
        curve = line.curve
        assert curve is not None
        color = colors[line.row.name]
        steps = f", {line.steps:,} steps" if several else ""
        label = f"{line.row.name}, {line.budget}{steps}: {curve.accuracy[-1]:.1f}"
        axes.plot(curve.minutes, curve.accuracy, DASHES[line.budget], color=color, label=label)
        if any(curve.deviation):
            pairs = list(zip(curve.accuracy, curve.deviation, strict=True))
            low, high = [mean - d for mean, d in pairs], [mean + d for mean, d in pairs]
            axes.fill_between(curve.minutes, low, high, color=color, alpha=BAND, linewidth=0)
        later += later_values(curve)
    first = lines[0]
    add_title(axes, f"{data_name(first.cell.data)}, {first.cell.labels} labels, {first.device}")
    axes.set_xlabel("minutes of training")
    axes.set_xlim(left=0)
    axes.set_ylabel("test accuracy (%)")
    axes.set_ylim(10 * (min(later) // 10), min(100.5, axes.get_ylim()[1]))
    axes.legend(loc="lower right", fontsize=8)
    return figure


def later_values(curve: "MinutesCurve") -> list[float]:
    pairs = zip(curve.minutes, curve.accuracy, strict=True)
    return [value for minute, value in pairs if minute > EARLY * curve.minutes[-1]]
