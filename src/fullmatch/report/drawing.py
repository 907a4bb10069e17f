"""From a matplotlib figure to a file, or to SVG that lives inside a page and follows its theme."""

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fullmatch.pages.markup import Markup, escape
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
    "text.parse_math": False,  # a class may be called $x$
    "xtick.color": LIGHT["faint"],
    "ytick.color": LIGHT["faint"],
    "xtick.labelcolor": LIGHT["ink"],
    "ytick.labelcolor": LIGHT["ink"],
    "lines.linewidth": 1.9,
    "font.size": 10.5,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "svg.fonttype": "none",  # text stays text: readable aloud, searchable, in the page's font
    "svg.hashsalt": "fullmatch",  # the same drawing gives the same bytes
}
# Narrow, so that the words stay readable where a phone shrinks the drawing.
SIZE = (4.8, 3.1)


@dataclass(frozen=True)
class Drawing:
    """A figure of one panel, its heading, and what it shows in words."""

    figure: Figure
    title: str
    words: str

    def svg(self, name: str) -> Markup:
        """Inline SVG; `name` keeps its ids apart from those of other drawings in the page."""
        buffer = io.StringIO()
        with styled():
            self.figure.savefig(buffer, format="svg", metadata={"Date": None})
        text = re.sub(r"(?s)<(metadata|style)[ >].*?</\1>", "", buffer.getvalue())
        text = re.sub(r'\bid="', f'id="{name}-', text)
        text = re.sub(r'(url\(#|href="#)', rf"\1{name}-", text)
        _, opening, rest = re.split(r"(<svg[^>]*>)", text, maxsplit=1)
        box = re.search(r'viewBox="[^"]*"', opening)
        assert box is not None
        label = f"<title>{escape(self.title)}</title><desc>{escape(self.words)}</desc>"
        return Markup(
            f'<svg {box[0]} role="img" aria-label="{escape(f"{self.title}. {self.words}")}" '
            f'xmlns:xlink="http://www.w3.org/1999/xlink">{label}{follow_theme(rest)}'
        )

    def png(self, path: Path, dots_per_inch: int = 150) -> None:
        with styled():
            self.figure.savefig(path, dpi=dots_per_inch, facecolor=LIGHT["paper"])


@contextmanager
def styled() -> Iterator[None]:
    """Our settings; the browser has the letters of every script, whatever matplotlib's font has."""
    with matplotlib.rc_context(RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def panel(size: tuple[float, float] = SIZE) -> tuple[Figure, Axes]:
    """A figure without pyplot, which would keep every one of them in memory."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()


def in_percent(axes: Axes, which: str = "y") -> None:
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def legend_above(axes: Axes, lengths: Sequence[int]) -> None:
    """As many entries in a row as have room, by the lengths of their labels."""
    widest = max(lengths)
    columns = 3 if sum(lengths) <= 34 else 2 if widest <= 20 else 1
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=min(columns, len(lengths)),
        borderaxespad=0.2,
        columnspacing=1.2,
        handlelength=1.9,
    )


def shortened(text: str, most: int = 14) -> str:
    """For axes; whole names stand in the tables."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
