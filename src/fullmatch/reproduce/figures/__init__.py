"""The paper's figures by name, drawn from runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.errors import UserError, did_you_mean
from fullmatch.reproduce.figures import bars, curves, features, overview
from fullmatch.reproduce.figures.runs import FigureRun, make_labels_unique
from fullmatch.reproduce.figures.style import COLORS, figure_style, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "PaperFigure", "draw_figure", "find_figure"]


@dataclass(frozen=True)
class PaperFigure:
    """A figure that can be drawn."""

    draw: Callable[[Sequence[FigureRun]], "Figure"]
    number: str = ""  # in the paper; empty if it has none


FIGURES = {
    "pseudo-labels": PaperFigure(curves.pseudo_labels, "1a"),
    "negatives": PaperFigure(curves.negatives, "1b"),
    "ambiguous": PaperFigure(bars.ambiguous, "2"),
    "entropy": PaperFigure(bars.entropy, "4"),
    "tsne": PaperFigure(features.tsne),
    "overview": PaperFigure(overview.overview),
    "top-k": PaperFigure(curves.top_k),
    "time": PaperFigure(bars.time),
    "accuracy": PaperFigure(curves.accuracy),
}


def find_figure(text: str) -> str:
    """The name of a figure, which may be given by its number in the paper."""
    for name, figure in FIGURES.items():
        if text.lower().removeprefix("fig") in (name, figure.number or name):
            return name
    listed = ", ".join(
        f"{name} ({figure.number})" if figure.number else name for name, figure in FIGURES.items()
    )
    raise UserError(
        f"unknown figure {text!r}: expected one of {listed}{did_you_mean(text, FIGURES)}"
    )


def draw_figure(
    name: str, runs: Sequence[Path], out: Path, *, root: Path | None = None, stem: str | None = None
) -> list[Path]:
    """Draw a figure from run folders, or, if it needs only curves, from entries of the ledger."""
    name = find_figure(name)
    if not runs:
        raise UserError(f"the figure {name!r} needs runs: list one or more run folders")
    if stem is not None and (Path(stem).name != stem or not stem.strip(".")):
        raise UserError(f"--stem {stem} is not a plain file name; choose the folder with --out")
    if len(runs) > len(COLORS):
        raise UserError(
            f"a figure shows at most {len(COLORS)} runs, not {len(runs)}; list fewer of them"
        )
    with figure_style():
        loaded = [FigureRun(path, root) for path in runs]
        make_labels_unique(loaded)
        return save_figure(FIGURES[name].draw(loaded), out, stem or name)
