"""From the plan to the files: `fullmatch reproduce table1` to `table4`, and `speed`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fullmatch.cli.parameters import Integer

if TYPE_CHECKING:
    from fullmatch.reproduce.grid import PaperTable
    from fullmatch.reproduce.ledger import Ledger
    from fullmatch.reproduce.lines import TableLine
    from fullmatch.reproduce.plan import PlannedRun

LEDGER = Path("docs/results/runs")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What to run and where to store it.

    Parameters
    ----------
    cells
        Data sets and numbers of labels, such as cifar10-40,digits-40. [default: the paper's]
    algorithms
        Rows of the table, such as fixmatch,fullmatch. [default: all]
    folds
        Seeds of the labels and the training, such as 0-2 or 0,2.
    budget
        The paper's settings, 1,048,576 steps, or the fast ones, 262,144 cheaper steps.
        [default: paper; speed: both]
    steps
        Steps per run, with the settings of the budget.
    plan
        Show the runs with their estimated hours and disk space, and start nothing.
    runs
        Folder of the run folders.
    ledger
        Folder of results, one file per run; runs that are finished there are not repeated.
    out
        Folder that the table is written to.
    """

    cells: str | None = None
    algorithms: str | None = None
    folds: str = "0-2"
    budget: Literal["paper", "fast"] | None = None
    steps: Integer = None
    plan: Annotated[bool, Parameter(negative=())] = False
    runs: Path = Path("runs/reproduce")
    ledger: Path = LEDGER
    out: Path = Path("runs/reproduce")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TableOptions(RunOptions):
    """What to run, where to store it, and what the table shows.

    Parameters
    ----------
    protocol
        Which accuracy the LaTeX table has: best (chosen on test, as in the paper), median or last.
    """

    protocol: Literal["best", "median", "last"] = "best"


def make_table(number: int, options: TableOptions) -> None:
    """Plan, run what is missing, and write the table."""
    from fullmatch.reproduce import grid, plan, provenance
    from fullmatch.reproduce.ledger import Ledger
    from fullmatch.reproduce.lines import build_lines

    table, ledger = grid.TABLES[number], Ledger(options.ledger)
    rows = grid.select_rows(table, options.algorithms)
    cells = grid.select_cells(table, options.cells)
    folds = grid.parse_folds(options.folds)
    planned = plan.plan_runs(
        rows,
        cells,
        folds,
        ledger=ledger,
        runs=options.runs,
        budget=options.budget,
        steps=options.steps,
    )
    if options.plan:
        show_plan(planned, ledger)
        return
    skipped = run_missing(planned, ledger, options)
    entries = [entry for entry in ledger.entries() if entry.fold in folds]
    lines = build_lines(table, rows, cells, entries, code=provenance.CODE)
    show_table(table, lines, options)
    require_runs(planned, skipped)


def make_speed(options: RunOptions) -> None:
    """Plan, run what is missing, and write accuracy against minutes."""
    from fullmatch.display.terminal import TextTable, print_note
    from fullmatch.experiment.presets import BUDGETS
    from fullmatch.reproduce import grid, plan, speed
    from fullmatch.reproduce.ledger import Ledger

    ledger, folds = Ledger(options.ledger), grid.parse_folds(options.folds)
    rows = grid.select_rows(speed.SPEED, options.algorithms)
    cells = grid.select_cells(speed.SPEED, options.cells)
    budgets = (options.budget,) if options.budget else BUDGETS
    planned = [
        run
        for budget in budgets
        for run in plan.plan_runs(
            rows, cells, folds, ledger=ledger, runs=options.runs, budget=budget, steps=options.steps
        )
    ]
    if options.plan:
        show_plan(planned, ledger)
        return
    skipped = run_missing(planned, ledger, options)
    entries = [entry for entry in ledger.entries() if entry.fold in folds]
    lines = speed.speed_lines(rows, cells, entries, budgets)
    listing = TextTable(*speed.HEADINGS)
    for line in lines:
        listing.add(*speed.format_speed(line))
    listing.show()
    for note in speed.NOTES:
        print_note(note)
    for path in speed.write_speed(options.out, lines):
        print_note(f"written: {path}")
    require_runs(planned, skipped)


def require_runs(planned: "Sequence[PlannedRun]", skipped: int) -> None:
    from fullmatch.errors import UserError, pluralize

    if skipped == len(planned):
        raise UserError(
            f"nothing was run: {pluralize(skipped, 'run')} skipped for the reasons above; "
            "fix them and run the same command again"
        )


def run_missing(planned: "Sequence[PlannedRun]", ledger: "Ledger", options: RunOptions) -> int:
    """Train and record every run that is not finished; returns how many were skipped."""
    from fullmatch.display.progress import train_with_progress
    from fullmatch.display.terminal import print_note
    from fullmatch.errors import pluralize
    from fullmatch.reproduce.plan import RunStatus, execute_runs

    unfinished = sum(item.status is not RunStatus.FINISHED for item in planned)
    check_writable("out", options.out)
    if unfinished:
        check_writable("runs", options.runs)
        check_writable("ledger", options.ledger)
    print_note(f"{pluralize(planned, 'run')}, {len(planned) - unfinished} of them finished")
    skipped = 0
    try:
        for outcome in execute_runs(planned, ledger, train_with_progress):
            print_note(f"{outcome.run.name}: {outcome.message}")
            skipped += outcome.skipped
    except KeyboardInterrupt:  # after a message on how to resume this run
        print_note("or run the same command again: it resumes this run and does the others")
        raise
    if 0 < skipped < len(planned):
        print_note(f"{pluralize(skipped, 'run')} skipped, for the reasons above")
    return skipped


def show_table(table: "PaperTable", lines: "Sequence[TableLine]", options: TableOptions) -> None:
    """Print the table with its notes and write it to files."""
    from fullmatch.display.terminal import TextTable, print_note
    from fullmatch.reproduce import tables

    listing = TextTable(*tables.HEADINGS)
    for line in lines:
        listing.add(*tables.format_line(line))
    listing.show()
    for note in tables.make_notes(lines):
        print_note(note)
    for path in tables.write_table(options.out, table, lines, options.protocol):
        print_note(f"written: {path}")


def check_writable(flag: str, folder: Path) -> None:
    """Fail before training rather than after it."""
    from os import W_OK, access

    from fullmatch.errors import UserError

    nearest = folder.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir() or not access(nearest, W_OK):
        problem = "is not writable" if nearest.is_dir() else "is a file"
        raise UserError(f"--{flag} {folder}: {nearest} {problem}; choose another folder")


def show_plan(planned: "Sequence[PlannedRun]", ledger: "Ledger") -> None:
    """Print the runs with the cost of each, and the total."""
    from fullmatch.display.terminal import TextTable, print_note
    from fullmatch.errors import pluralize
    from fullmatch.reproduce.plan import RunCost, RunStatus, estimate_cost, find_obstacle
    from fullmatch.reproduce.rates import measured_rates

    listing = TextTable("run", "steps", "state", "hours", "GB", "steps/s")
    rates = measured_rates(ledger)
    ready: list[RunCost] = []
    blocked: list[RunCost] = []  # by something that is missing
    for item in planned:
        steps = f"{item.config.training.steps:,}"
        if item.status is RunStatus.FINISHED:
            listing.add(item.name, steps, item.status.value, "-", "-", "-")
            continue
        cost, obstacle = estimate_cost(item, rates), find_obstacle(item)
        (blocked if obstacle else ready).append(cost)
        speed = f"{cost.speed:.1f} {cost.source}"
        numbers = (f"{cost.hours:.2f}", f"{cost.gigabytes:.3f}", speed)
        listing.add(item.name, steps, obstacle or item.status.value, *numbers)
    listing.show()
    hours, gigabytes = sum(cost.hours for cost in ready), sum(cost.gigabytes for cost in ready)
    total = f"the remaining ones take about {hours:.1f} hours and {gigabytes:.2f} GB"
    if blocked:
        more = sum(cost.hours for cost in blocked)
        total += (
            f"; {pluralize(blocked, 'run')} ({more:.1f} more hours) would be skipped until "
            "they have what they need"
        )
    print_note(f"{pluralize(planned, 'run')}; {total}")
    guessed = sum(not cost.exact for cost in [*ready, *blocked])
    if guessed:
        print_note(
            f"{pluralize(guessed, 'rate')} not measured for the same data, network, method, step "
            "and device: the nearest one stands in, or an assumption"
        )
