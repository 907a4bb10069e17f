"""The paper's figures by name, drawn from runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.errors import UserError, did_you_mean
from fullmatch.reproduce.figures import bars, curves, features, overview
from fullmatch.reproduce.figures.groups import RunGroup, group_seeds, make_labels_unique
from fullmatch.reproduce.figures.runs import FigureRun
from fullmatch.reproduce.figures.style import (
    COLORS,
    FORMATS,
    figure_style,
    remove_titles,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "PaperFigure", "draw_figure", "find_figure"]


@dataclass(frozen=True)
class PaperFigure:
    """A figure that can be drawn."""

    draw: Callable[[Sequence[FigureRun]], "Figure"]
    number: str = ""  # in the paper; empty if it has none
    joins_seeds: bool = True  # draws runs that differ only in their seed as one


FIGURES = {
    "pseudo-labels": PaperFigure(curves.pseudo_labels, "1a"),
    "negatives": PaperFigure(curves.negatives, "1b"),
    "ambiguous": PaperFigure(bars.ambiguous, "2", joins_seeds=False),
    "entropy": PaperFigure(bars.entropy, "4"),
    "tsne": PaperFigure(features.tsne, joins_seeds=False),
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
    name: str,
    runs: Sequence[Path],
    out: Path,
    *,
    root: Path | None = None,
    stem: str | None = None,
    formats: str | None = None,
    title: bool = True,
) -> list[Path]:
    """Draw a figure from run folders, or, if it needs only curves, from entries of the ledger.

    `out` is a folder, or a file whose ending is the format. `formats` is a list such as png,pdf.
    """
    name = find_figure(name)
    if not runs:
        raise UserError(f"the figure {name!r} needs runs: list one or more run folders")
    folder, stem, endings = choose_files(name, out, stem, formats)
    with figure_style():
        loaded = [FigureRun(path, root) for path in runs]
        joined = FIGURES[name].joins_seeds
        groups = group_seeds(loaded) if joined else [RunGroup((run,)) for run in loaded]
        if len(groups) > len(COLORS):
            raise UserError(
                f"a figure shows at most {len(COLORS)} runs, not {len(groups)}; list fewer of them"
            )
        make_labels_unique(groups)
        figure = FIGURES[name].draw(loaded)
        if not title:
            remove_titles(figure)
        return save_figure(figure, folder, stem, endings)


def choose_files(
    name: str, out: Path, stem: str | None, formats: str | None
) -> tuple[Path, str, tuple[str, ...]]:
    """The folder, the files' name without its ending, and the endings."""
    ending = out.suffix.removeprefix(".").lower()
    if ending in FORMATS and not out.is_dir():
        if stem is not None or formats is not None:
            raise UserError(f"--out {out} is a file; leave out --stem and --format")
        return out.parent, out.stem, (ending,)
    if stem is not None and (Path(stem).name != stem or not stem.strip(".")):
        raise UserError(f"--stem {stem} is not a plain file name; choose the folder with --out")
    return out, stem or name, parse_formats(formats)


def parse_formats(text: str | None) -> tuple[str, ...]:
    """Endings from text such as png,pdf; SVG and PNG by default."""
    if text is None:
        return FORMATS[:2]
    words = [word.strip().lower().removeprefix(".") for word in text.split(",")]
    for word in words:
        if word not in FORMATS:
            raise UserError(
                f"unknown format {word!r}: expected some of {', '.join(FORMATS)}"
                f"{did_you_mean(word, FORMATS)}"
            )
    return tuple(dict.fromkeys(words))
