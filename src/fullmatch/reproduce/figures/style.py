"""One style for all figures, and how they are saved."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullmatch.storage.atomic import explained_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Distinct for any color vision, and in gray.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
FORMATS = ("svg", "png", "pdf")
UNDATED: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
TITLE = "title"  # marks text that a caption would say
SETTINGS: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#444444",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "font.size": 10,
    "grid.color": "#E5E5E5",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,  # journals refuse the default, whose glyphs are programs
    "savefig.dpi": 300,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "fullmatch",  # the same figure gives the same file
}


def figure_style() -> AbstractContextManager[None]:
    """The style within which figures are drawn and saved."""
    import matplotlib

    return matplotlib.rc_context(SETTINGS)


def canvas(
    rows: int = 1, columns: int = 1, *, width: float = 6.4, height: float = 3.8, **more: Any
) -> tuple["Figure", Any]:
    """A figure without a window, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **more)


def format_steps_axis(axes: "Axes") -> None:
    import numpy as np
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_xlabel("training step")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    for line in axes.get_lines():
        if np.size(line.get_xdata()) == 1:  # a curve of one point would be invisible
            line.set_marker("o")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: f"{step:,.0f}"))
    axes.set_xlim(left=0)


def add_title(axes: "Axes", text: str) -> None:
    """What the figure shows; in a paper, its caption says that (`remove_titles`)."""
    axes.set_title(text, loc="left").set_gid(TITLE)


def remove_titles(figure: "Figure") -> None:
    """Leave out what a caption says; names of the parts of a figure stay."""
    from matplotlib.text import Text

    for text in figure.findobj(lambda part: isinstance(part, Text) and part.get_gid() == TITLE):
        assert isinstance(text, Text)
        text.set_text("")


def save_figure(figure: "Figure", out: Path, stem: str, formats: Sequence[str]) -> list[Path]:
    """Write the figure in every format; the same figure gives the same files."""
    paths = [out / f"{stem}.{ending}" for ending in formats]
    with explained_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        for path, ending in zip(paths, formats, strict=True):
            figure.savefig(path, format=ending, metadata=UNDATED.get(ending))
    return paths
