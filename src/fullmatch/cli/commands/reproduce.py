"""`fullmatch reproduce`: the paper's tables and figures, and the ledger of results."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from fullmatch.cli.tables import LEDGER, RunOptions, TableOptions, make_speed, make_table

PAGE = Path("docs/results.md")

app = App(
    name="reproduce",
    result_action="return_value",
    help="Reproduce the paper's tables and figures, and record results.",
)


DEFAULTS = TableOptions()
SPEED_DEFAULTS = RunOptions()


@app.command
def table1(options: TableOptions = DEFAULTS) -> None:
    """Every method on CIFAR-10, CIFAR-100, SVHN and STL-10, or on other data such as digits-40."""
    make_table(1, options)


@app.command
def table2(options: TableOptions = DEFAULTS) -> None:
    """Top-1 and top-5 accuracy on ImageNet with 100 labels per class."""
    make_table(2, options)


@app.command
def table3(options: TableOptions = DEFAULTS) -> None:
    """The two losses separately and together, on CIFAR-100 with 400 labels or any other cell."""
    make_table(3, options)


@app.command
def table4(options: TableOptions = DEFAULTS) -> None:
    """The weights of the two losses, on CIFAR-100 with 10,000 labels or any other cell."""
    make_table(4, options)


@app.command
def speed(options: RunOptions = SPEED_DEFAULTS) -> None:
    """Accuracy against minutes, by the paper's settings and by the fast ones.

    For FixMatch, FlexMatch, FullMatch and FullFlex on CIFAR-10 with 250 labels, or others.
    """
    make_speed(options)


@app.command
def figure(
    name: str,
    runs: Annotated[list[Path], Parameter(negative=())],
    *,
    out: Path = Path("runs/figures"),
    stem: str | None = None,
    format: str | None = None,
    title: bool = True,
    root: Path | None = None,
) -> None:
    """Draw a figure of the paper from runs, as SVG and PNG or in other formats.

    Runs that differ only in their seed are one line: their mean, with a band of one standard
    deviation.

    Parameters
    ----------
    name
        pseudo-labels (or 1a), negatives (1b), ambiguous (2), entropy (4), tsne, overview, top-k,
        time, or accuracy.
    runs
        Run folders; for curves and times, files of the ledger are enough.
    out
        Folder that the figure is written to; or one file, which ends in .svg, .png or .pdf.
    stem
        Name of the files, without the suffix. [default: the figure's name]
    format
        Formats, such as png,pdf,svg. [default: svg,png]
    title
        Write data, labels and steps above the figure. A paper says that in the caption.
    root
        Folder of the data, for figures that need it. [default: where the run had it]
    """
    from fullmatch.display.terminal import print_note
    from fullmatch.reproduce.figures import draw_figure

    paths = draw_figure(name, runs, out, root=root, stem=stem, formats=format, title=title)
    for path in paths:
        print_note(f"written: {path}")


@app.command
def record(
    runs: Annotated[list[Path], Parameter(negative=())],
    *,
    commit: str | None = None,
    dirty: Annotated[bool, Parameter(negative=())] = False,
    note: Annotated[list[str] | None, Parameter(negative=())] = None,
    ledger: Path = LEDGER,
) -> None:
    """Add finished runs to the ledger.

    Parameters
    ----------
    runs
        Run folders.
    commit
        The commit of the code that made them. [default: unknown]
    dirty
        That code had changes that were not committed.
    note
        A sentence to store with the result; may be repeated.
    ledger
        Folder of the ledger.
    """
    from fullmatch.display.terminal import print_note
    from fullmatch.errors import UserError
    from fullmatch.reproduce.ledger import Ledger
    from fullmatch.reproduce.provenance import UNKNOWN_CODE, committed_code
    from fullmatch.reproduce.recording import make_entry

    if dirty and commit is None:
        raise UserError("--dirty needs the commit that was changed; add --commit")
    for run in runs:
        code = UNKNOWN_CODE if commit is None else committed_code(commit, dirty=dirty)
        print_note(f"recorded: {Ledger(ledger).add(make_entry(run, code, note or ()))}")


@app.command
def page(*, ledger: Path = LEDGER, page: Path = PAGE) -> None:
    """Write the tables of all recorded results into a page, between its two markers.

    Its pictures of accuracy against minutes go to the folder images beside it.

    Parameters
    ----------
    ledger
        Folder of the ledger.
    page
        A Markdown file; text outside the markers stays as it is.
    """
    from fullmatch.display.terminal import print_note
    from fullmatch.reproduce.ledger import Ledger
    from fullmatch.reproduce.results_page import draw_speed, update_page

    update_page(page, Ledger(ledger))
    for path in [page, *draw_speed(page, Ledger(ledger))]:
        print_note(f"written: {path}")
