"""The figure of a sweep: each setting's values against the score."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullmatch.reproduce.figures.style import COLORS, canvas, figure_style, save_figure
from fullmatch.sweeps.space import DECADE
from fullmatch.sweeps.table import SweepRow, SweepTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 6
SPREAD = 0.06  # between the runs of one value, where values are names
FEW = 6  # values that each get a tick
LONG = 12  # characters from which names are slanted


def draw_sweep(table: SweepTable) -> list[Path]:
    """Write sweep.svg and sweep.png: one panel per varied setting, a point per run, and means."""
    names = (table.varied or list(table.names[:1]) or [""])[:MOST_PANELS]
    with figure_style():
        width = 5.2 if len(names) == 1 else 3.6 * min(3, len(names))
        columns = min(3, len(names))
        rows = -(-len(names) // columns)
        figure, panels = canvas(
            rows, columns, width=width, height=3.6 * rows, sharey=True, squeeze=False
        )
        for at, axes in enumerate(panels.flat):
            if at >= len(names):
                axes.set_visible(False)
                continue
            draw_panel(axes, table, names[at])
            if at % columns == 0:
                axes.set_ylabel(f"{table.score.heading} (%)")
        panels.flat[0].legend(loc="best", fontsize=8)
        return save_figure(figure, table.folder, "sweep", ("svg", "png"))


def draw_panel(axes: "Axes", table: SweepTable, name: str) -> None:
    """One setting: rings are runs, dots are means."""
    rows = [row for row in table.rows if row.finished]
    texts = [dict(row.point.values).get(name, "") for row in rows]
    numeric = all(map(is_number, texts)) and len(set(texts)) > 1
    places = list(map(float, texts)) if numeric else name_places(texts)
    log = numeric and min(places) > 0 and max(places) / min(places) >= DECADE
    means = mean_by_place(places, rows)
    if table.searched:  # hardly any value is tried twice
        means = [(at, 100 * (row.mean or 0)) for at, row in zip(places, rows, strict=True)]
    style = "o-" if numeric and not table.searched else "o"
    axes.plot(*zip(*means, strict=True), style, color=COLORS[0], label="mean over runs")
    best = [at for at, row in zip(places, rows, strict=True) if row is table.best]
    top = [100 * (table.best.mean or 0)] * len(best) if table.best else []
    axes.plot(best, top, "*", color=COLORS[1], markersize=14, label="best setting")
    runs = [
        (x, y)
        for place, row in zip(places, rows, strict=True)
        for x, y in spread_points(place, [100 * score for score in row.finished], even=not numeric)
    ]
    ring: dict[str, Any] = {
        "s": 22,
        "facecolors": "none",
        "edgecolors": "#444444",
        "linewidths": 0.8,
        "zorder": 3,
    }
    axes.scatter(*zip(*runs, strict=True), **ring, label="one run")
    label_values(axes, name, dict(zip(places, texts, strict=True)), numeric=numeric, log=log)


def label_values(
    axes: "Axes", name: str, ticks: dict[float, str], *, numeric: bool, log: bool
) -> None:
    """Ticks at the values themselves where they are few."""
    axes.set_xlabel(name)
    if log:
        axes.set_xscale("log")
    if not numeric or len(ticks) <= FEW:
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.minorticks_off()
    if max(map(len, ticks.values())) >= LONG and len(ticks) > 2:
        axes.tick_params(axis="x", rotation=20)
    if not numeric:
        axes.set_xlim(min(ticks) - 0.5, max(ticks) + 0.5)


def mean_by_place(places: Sequence[float], rows: Sequence[SweepRow]) -> list[tuple[float, float]]:
    """The mean over all runs with a value, in the order of the values."""
    scores: dict[float, list[float]] = {}
    for place, row in zip(places, rows, strict=True):
        scores.setdefault(place, []).extend(row.finished)
    return [(place, 100 * sum(each) / len(each)) for place, each in sorted(scores.items())]


def spread_points(
    place: float, scores: Sequence[float], *, even: bool
) -> list[tuple[float, float]]:
    """Side by side where values are names, so that equal scores can be seen."""
    width = SPREAD if even and len(scores) > 1 else 0.0
    middle = (len(scores) - 1) / 2
    return [(place + width * (at - middle), score) for at, score in enumerate(scores)]


def name_places(texts: Sequence[str]) -> list[float]:
    order = {text: at for at, text in enumerate(sorted(set(texts)))}
    return [float(order[text]) for text in texts]


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
