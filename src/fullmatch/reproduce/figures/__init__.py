"""The paper's figures by name, drawn from runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.errors import UserError, did_you_mean
from fullmatch.reproduce.figures import bars, curves, pictures
from fullmatch.reproduce.figures.shown import Shown, told_apart
from fullmatch.reproduce.figures.style import COLORS, save, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "Drawing", "drawn", "find"]


@dataclass(frozen=True)
class Drawing:
    """A figure that can be asked for."""

    draw: Callable[[Sequence[Shown]], "Figure"]
    paper: str  # its number in the paper, or nothing
    words: str


FIGURES = {
    "pseudo-labels": Drawing(
        curves.pseudo_labels, "1a", "share of images with a pseudo-label over training"
    ),
    "negatives": Drawing(curves.negatives, "1b", "negatives an image, and how many are right"),
    "ambiguous": Drawing(bars.ambiguous, "2", "confidences of the most ambiguous test image"),
    "entropy": Drawing(bars.entropy, "4", "how sure the predictions on the test images are"),
    "tsne": Drawing(pictures.tsne, "", "features of test images in the plane"),
    "overview": Drawing(pictures.overview, "", "the role of every class in one real batch"),
    "top-k": Drawing(curves.top_k, "", "top-5 and top-9 accuracy over training"),
    "time": Drawing(bars.time, "", "time of a step"),
    "accuracy": Drawing(curves.accuracy, "", "test accuracy over training"),
}


def find(name: str) -> str:
    """The name of a figure, also by its number in the paper."""
    for known, drawing in FIGURES.items():
        if name.lower().removeprefix("fig") in (known, drawing.paper or known):
            return known
    listed = ", ".join(
        f"{known} ({drawing.paper})" if drawing.paper else known
        for known, drawing in FIGURES.items()
    )
    raise UserError(
        f"unknown figure {name!r}: expected one of {listed}{did_you_mean(name, FIGURES)}"
    )


def drawn(
    name: str, runs: Sequence[Path], out: Path, *, root: Path | None = None, stem: str | None = None
) -> list[Path]:
    """Draw a figure from run folders, or, where curves are enough, from entries of the ledger."""
    known = find(name)
    if not runs:
        raise UserError(f"the figure {known!r} needs runs: name one or more run folders")
    if stem is not None and (Path(stem).name != stem or not stem.strip(".")):
        raise UserError(f"--stem {stem} is no plain name of a file; name its folder with --out")
    if len(runs) > len(COLORS):
        raise UserError(f"a figure shows {len(COLORS)} runs at most, not {len(runs)}; name fewer")
    with styled():
        figure = FIGURES[known].draw(told_apart([Shown(path, root) for path in runs]))
        return save(figure, out, stem or known)
