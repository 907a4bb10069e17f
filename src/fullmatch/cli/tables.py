"""A table of the paper, from a plan to files: what `fullmatch reproduce table1` to `table4` do."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fullmatch.cli.parameters import Whole

if TYPE_CHECKING:
    from fullmatch.reproduce.ledger import Ledger
    from fullmatch.reproduce.plan import Planned

LEDGER = Path("docs/results/runs")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """What to run and where to keep it.

    Parameters
    ----------
    cells
        Data sets and labels, such as cifar10-40,digits-40. [default: the paper's]
    algorithms
        Rows of the table, such as fixmatch,fullmatch. [default: all]
    folds
        Draws of the labels, such as 0-2 or 0,2.
    budget
        Steps of every run: the paper's 1,048,576, or a sixteenth. [default: paper]
    steps
        Steps of every run, whatever the budget.
    plan
        Show the runs, their estimated hours and disk, and start nothing.
    runs
        Folder that holds the run folders.
    ledger
        Folder of results, one file a run; what is finished there is not run again.
    out
        Folder that the table is written to, as Markdown, CSV and LaTeX.
    """

    cells: str | None = None
    algorithms: str | None = None
    folds: str = "0-2"
    budget: Literal["paper", "fast"] | None = None
    steps: Whole = None
    plan: Annotated[bool, Parameter(negative=())] = False
    runs: Path = Path("runs/reproduce")
    ledger: Path = LEDGER
    out: Path = Path("runs/reproduce")


def make(number: int, options: TableOptions) -> None:
    """Plan, run what is missing, and write the table."""
    from fullmatch.cli.terminal import Listing, say
    from fullmatch.errors import UserError, many
    from fullmatch.reproduce import grid, plan, provenance, tables
    from fullmatch.reproduce.ledger import Ledger
    from fullmatch.reproduce.lines import lines

    table, ledger = grid.TABLES[number], Ledger(options.ledger)
    rows, cells = grid.rows(table, options.algorithms), grid.cells(table, options.cells)
    folds = grid.folds(options.folds)
    planned = plan.plan(
        rows,
        cells,
        folds,
        ledger=ledger,
        runs=options.runs,
        budget=options.budget,
        steps=options.steps,
    )
    if options.plan:
        show(planned, ledger)
        return
    from fullmatch.cli.progress import follow

    left = sum(item.status != "finished" for item in planned)
    refuse_unwritable("out", options.out)
    if left:
        refuse_unwritable("runs", options.runs)
        refuse_unwritable("ledger", options.ledger)
    say(f"{many(planned, 'run')}, {len(planned) - left} of them finished")
    left_out = 0
    try:
        for item, outcome in plan.carry_out(planned, ledger, follow):
            say(f"{item.name}: {outcome}")
            left_out += outcome.startswith(plan.LEFT_OUT)
    except SystemExit:  # the run has said how it alone goes on
        say("or give the same command again: it resumes this run, records it and does the others")
        raise
    asked = [entry for entry in ledger.entries() if entry["config"]["seed"] in folds]
    found = lines(table, rows, cells, asked, code=provenance.CODE)
    listing = Listing(*tables.HEADINGS)
    for line in found:
        listing.add(*tables.cells_of(line))
    listing.show()
    for note in tables.notes(found):
        say(note)
    for path in tables.write(options.out, table, found):
        say(f"written: {path}")
    if left_out == len(planned):
        raise UserError(
            f"nothing was run: {many(left_out, 'run')} left out for the reasons above; "
            "mend them, and give the same command again"
        )
    if left_out:
        say(f"{many(left_out, 'run')} left out, for the reasons above")


def refuse_unwritable(flag: str, folder: Path) -> None:
    """Before anything is trained: what cannot be kept need not be made."""
    from os import W_OK, access

    from fullmatch.errors import UserError

    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir() or not access(there, W_OK):
        why = "cannot be written to" if there.is_dir() else "is a file"
        raise UserError(f"--{flag} {folder}: {there} {why}; name another folder")


def show(planned: "list[Planned]", ledger: "Ledger") -> None:
    """The runs with what each will take, and the sum of it."""
    from fullmatch.cli.terminal import Listing, say
    from fullmatch.errors import many
    from fullmatch.reproduce.plan import WORDS, estimate, obstacle

    listing = Listing("run", "steps", "state", "hours", "GB", "steps/s")
    entries = ledger.entries()
    hours = gigabytes = 0.0
    lacking: list[float] = []  # hours of runs that need something first
    for item in planned:
        steps = f"{item.config.training.steps:,}"
        if item.status == "finished":
            listing.add(item.name, steps, WORDS[item.status], "-", "-", "-")
            continue
        guess, why = estimate(item, entries), obstacle(item)
        if why:
            lacking.append(guess.hours)
        else:
            hours, gigabytes = hours + guess.hours, gigabytes + guess.gigabytes
        speed = f"{guess.speed:.1f} {guess.source}"
        cost = (f"{guess.hours:.2f}", f"{guess.gigabytes:.3f}", speed)
        listing.add(item.name, steps, why or WORDS[item.status], *cost)
    listing.show()
    left = f"what is left takes about {hours:.1f} hours and {gigabytes:.2f} GB"
    if lacking:
        more = f"{sum(lacking):.1f} hours more"
        left += f"; {many(lacking, 'run')}, {more}, would be left out for what they need"
    say(f"{many(planned, 'run')}; {left}")
