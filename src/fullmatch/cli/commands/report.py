"""`fullmatch report`: a page about one run, or one that compares several."""

from pathlib import Path


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
    from fullmatch.api.pages import report as write_report
    from fullmatch.cli.changes import noting_changes

    with noting_changes(run, *others):
        print(f"Written to {write_report(run, *others, out=out).path}")
