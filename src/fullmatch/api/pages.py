"""Reports as pages that are written to a file and shown in a notebook."""

import webbrowser
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.pages.frame import write_page
from fullmatch.pages.markup import tag
from fullmatch.reports.page import render_comparison, render_report
from fullmatch.storage.runs import read_run

if TYPE_CHECKING:
    from fullmatch.data import Source

HEIGHT = 600  # pixels of a page inside a notebook


@dataclass(frozen=True)
class ReportPage:
    """A page in one file that needs no other; notebooks show it as it is."""

    path: Path

    @property
    def html(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def open(self) -> None:
        """Open it in the browser of this machine."""
        webbrowser.open(self.path.resolve().as_uri())

    def _repr_html_(self) -> str:
        return embed_page(self.html)


def embed_page(html: str, height: int = HEIGHT) -> str:
    """A whole page inside another one, so that neither changes how the other looks."""
    style = "width: 100%; border: 1px solid #8884; border-radius: 6px"
    return tag("iframe", srcdoc=html, height=str(height), style=style)


def report(
    run: str | PathLike[str],
    *others: str | PathLike[str],
    out: str | PathLike[str] | None = None,
) -> ReportPage:
    """Write a page about a run, finished or not, or one that compares several.

    By default it goes to report.html in the run folder, or in the current folder where several
    runs are compared.
    """
    if not others:
        return ReportPage(write_report(Path(run), Path(out or Path(run) / "report.html")))
    path = Path(out or "report.html")
    write_page(path, render_comparison([read_run(Path(each)) for each in (run, *others)]))
    return ReportPage(path)


def write_report(folder: Path, path: Path, source: "Source | None" = None) -> Path:
    """Write the page of one run; `source` saves reading its pictures again."""
    from fullmatch.inference.album import load_pictures

    run = read_run(folder)
    write_page(path, render_report(run, *load_pictures(run, source)))
    return path
