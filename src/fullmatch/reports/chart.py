"""Matplotlib figures as inline SVG that follows the page's theme, or as PNG files."""

import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fullmatch.pages.markup import Markup, escape, join, tag
from fullmatch.pages.palette import LIGHT, follow_theme

RC: dict[Any, Any] = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": LIGHT["faint"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT["rule"],
    "grid.linewidth": 0.6,
    "text.color": LIGHT["ink"],
    "text.parse_math": False,  # a class may have the name $x$
    "xtick.color": LIGHT["faint"],
    "ytick.color": LIGHT["faint"],
    "xtick.labelcolor": LIGHT["ink"],
    "ytick.labelcolor": LIGHT["ink"],
    "lines.linewidth": 1.9,
    "font.size": 10.5,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "svg.fonttype": "none",  # text stays text, for searching and for screen readers
    "svg.hashsalt": "fullmatch",  # the same chart gives the same bytes
}
# Narrow, so that text stays readable when a phone shrinks the chart.
SIZE = (4.8, 3.1)


@dataclass(frozen=True)
class Chart:
    """A figure with one panel, its heading, and a sentence about what it shows."""

    figure: Figure
    title: str
    summary: str

    def to_svg(self, prefix: str) -> Markup:
        """Inline SVG; `prefix` makes its ids unique in the page."""
        buffer = io.StringIO()
        with chart_style():
            self.figure.savefig(buffer, format="svg", metadata={"Date": None})
        text = re.sub(r"(?s)<(metadata|style)[ >].*?</\1>", "", buffer.getvalue())
        text = re.sub(r'\bid="', f'id="{prefix}-', text)
        text = re.sub(r'(url\(#|href="#)', rf"\1{prefix}-", text)
        _, opening, content = re.split(r"(<svg[^>]*>)", text, maxsplit=1)
        box = re.search(r'viewBox="[^"]*"', opening)
        assert box is not None
        label = f"<title>{escape(self.title)}</title><desc>{escape(self.summary)}</desc>"
        return Markup(
            f'<svg {box[0]} role="img" aria-label="{escape(f"{self.title}. {self.summary}")}" '
            f'xmlns:xlink="http://www.w3.org/1999/xlink">{label}{follow_theme(content)}'
        )

    def save_png(self, path: Path, dots_per_inch: int = 150) -> None:
        with chart_style():
            self.figure.savefig(path, dpi=dots_per_inch, facecolor=LIGHT["paper"])


def render_charts(charts: Iterable[Chart | None], prefix: str) -> Markup:
    """Charts side by side where there is room, each with its summary below."""
    figures = [
        tag(
            "figure",
            tag("h3", chart.title),
            chart.to_svg(f"{prefix}-{number}"),
            tag("figcaption", chart.summary),
        )
        for number, chart in enumerate(charts)
        if chart is not None
    ]
    return tag("div", *figures, class_="grid") if figures else join([])


@contextmanager
def chart_style() -> Iterator[None]:
    """Our matplotlib settings, without warnings about glyphs, which the browser has anyway."""
    with matplotlib.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def make_panel(size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    """A figure made without pyplot, which would keep every figure in memory."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()


def format_as_percent(axes: Axes, which: str = "y") -> None:
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def add_legend_above(axes: Axes, label_lengths: Sequence[int]) -> None:
    """As many entries in a row as fit, judged by the lengths of their labels."""
    longest = max(label_lengths)
    columns = 3 if sum(label_lengths) <= 34 else 2 if longest <= 22 else 1
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=min(columns, len(label_lengths)),
        borderaxespad=0.2,
        columnspacing=1.2,
        handlelength=1.9,
    )


def shorten(text: str, limit: int = 14) -> str:
    """For axes; the tables have the full names."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
