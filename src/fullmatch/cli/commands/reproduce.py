"""`fullmatch reproduce`: the paper's tables and figures, and the ledger of results."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from fullmatch.cli.tables import LEDGER, TableOptions, make

PAGE = Path("docs/results.md")

app = App(
    name="reproduce",
    result_action="return_value",
    help="The paper's tables and figures as runs, with the paper's numbers beside them.",
)


USUAL = TableOptions()


@app.command
def table1(options: TableOptions = USUAL) -> None:
    """Every method on CIFAR-10, CIFAR-100, SVHN and STL-10; or on other data, such as digits-40."""
    make(1, options)


@app.command
def table2(options: TableOptions = USUAL) -> None:
    """Top-1 and top-5 accuracy on ImageNet with 100 labels a class."""
    make(2, options)


@app.command
def table3(options: TableOptions = USUAL) -> None:
    """The two losses apart and together; CIFAR-100 with 400 labels, or any other cell."""
    make(3, options)


@app.command
def table4(options: TableOptions = USUAL) -> None:
    """The weights of the two losses; CIFAR-100 with 10,000 labels, or any other cell."""
    make(4, options)


@app.command
def figure(
    name: str,
    runs: Annotated[list[Path], Parameter(negative=())],
    *,
    out: Path = Path("runs/figures"),
    stem: str | None = None,
    root: Path | None = None,
) -> None:
    """Draw a figure of the paper from runs, as SVG and PNG.

    Parameters
    ----------
    name
        pseudo-labels (or 1a), negatives (1b), ambiguous (2), entropy (4), tsne, overview, top-k,
        time, or accuracy.
    runs
        Run folders; for curves and times, files of the ledger will do.
    out
        Folder that the figure is written to.
    stem
        Name of the files, without their ending. [default: the figure's name]
    root
        Where the data lies, for figures with pictures. [default: where the run had it]
    """
    from fullmatch.cli.terminal import say
    from fullmatch.reproduce.figures import drawn

    for path in drawn(name, runs, out, root=root, stem=stem):
        say(f"written: {path}")


@app.command
def record(
    runs: Annotated[list[Path], Parameter(negative=())],
    *,
    commit: str | None = None,
    dirty: Annotated[bool, Parameter(negative=())] = False,
    note: Annotated[list[str] | None, Parameter(negative=())] = None,
    ledger: Path = LEDGER,
) -> None:
    """Put finished runs into the ledger.

    Parameters
    ----------
    runs
        Run folders.
    commit
        The commit of the code that made them. [default: unknown]
    dirty
        That code had changes which were not committed.
    note
        A sentence to keep with the result; may be repeated.
    ledger
        Folder of the ledger.
    """
    from fullmatch.cli.terminal import say
    from fullmatch.errors import UserError
    from fullmatch.reproduce import ledger as ledgers

    if dirty and commit is None:
        raise UserError("--dirty says that a commit had changes; name it with --commit")
    for run in runs:
        entry = ledgers.record(run, commit=commit, dirty=dirty, notes=note or ())
        say(f"recorded: {ledgers.Ledger(ledger).add(entry)}")


@app.command
def page(*, ledger: Path = LEDGER, page: Path = PAGE) -> None:
    """Write the tables of all recorded results into a page, between its two marks.

    Parameters
    ----------
    ledger
        Folder of the ledger.
    page
        A Markdown file; what stands outside the marks is left as it is.
    """
    from fullmatch.cli.terminal import say
    from fullmatch.reproduce.ledger import Ledger
    from fullmatch.reproduce.results_page import update

    update(page, Ledger(ledger))
    say(f"written: {page}")
