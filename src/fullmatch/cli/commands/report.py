"""`fullmatch report`: a page about one run, or one that compares several."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fullmatch.data import Source


def report(run: Path, *others: Path, out: Path | None = None) -> None:
    """Write a page about a run, or one that compares several; it opens in any browser.

    Parameters
    ----------
    run
        A run folder, finished or not.
    others
        More run folders, to compare with.
    out
        The file to write. [default: report.html in the run folder; for several runs, report.html
        in the current folder]
    """
    from fullmatch.pages.frame import write_page
    from fullmatch.report.page import render_comparison
    from fullmatch.storage.runs import read_run

    if not others:
        path = write_report(run, out or run / "report.html")
    else:
        path = out or Path("report.html")
        write_page(path, render_comparison([read_run(each) for each in (run, *others)]))
    print(f"Written to {path}")


def report_after_training(run: Path, source: "Source | None" = None) -> None:
    """Write the report at the end of training; if that fails, the run is finished all the same."""
    try:
        print(f"Report: {write_report(run, run / 'report.html', source)}")
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        print(f"No report was written ({reason}); try: fullmatch report {shlex.quote(str(run))}")


def write_report(folder: Path, path: Path, source: "Source | None" = None) -> Path:
    """Write the page of one run; `source` saves reading its pictures again."""
    from fullmatch.inference.album import load_pictures
    from fullmatch.pages.frame import write_page
    from fullmatch.report.page import render_report
    from fullmatch.storage.runs import read_run

    run = read_run(folder)
    write_page(path, render_report(run, *load_pictures(run, source)))
    return path
