"""`fullmatch report`: one page that says how a run went, or sets several beside each other."""

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
        The file to write. [default: report.html in the run folder; of several runs, report.html
        in the current folder]
    """
    from fullmatch.report import page
    from fullmatch.report.frame import write
    from fullmatch.storage.runs import read_run

    if not others:
        path = written(run, out or run / "report.html")
    else:
        path = out or Path("report.html")
        write(path, page.comparison([read_run(each) for each in (run, *others)]))
    print(f"Written to {path}")


def report_beside(run: Path, source: "Source | None" = None) -> None:
    """The page at the end of a training; a page that fails takes nothing from the run."""
    try:
        print(f"See how it went: {written(run, run / 'report.html', source)}")
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        print(f"No page about this run ({reason}); try: fullmatch report {shlex.quote(str(run))}")


def written(folder: Path, path: Path, source: "Source | None" = None) -> Path:
    """Write the page of one run; `source` saves reading its pictures again."""
    from fullmatch.inference.album import pictures_of
    from fullmatch.report import page
    from fullmatch.report.frame import write
    from fullmatch.storage.runs import read_run

    run = read_run(folder)
    write(path, page.report(run, *pictures_of(run, source)))
    return path
