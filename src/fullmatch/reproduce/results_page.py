"""The results page: tables of everything in the ledger, written between two markers."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from fullmatch.data import DATASETS
from fullmatch.errors import UserError
from fullmatch.reproduce.entry import LedgerEntry
from fullmatch.reproduce.grid import TABLES, PaperTable, TableCell, TableRow
from fullmatch.reproduce.ledger import Ledger
from fullmatch.reproduce.lines import TableLine, build_lines, is_run_of
from fullmatch.reproduce.names import algorithm_name
from fullmatch.reproduce.speed import SPEED, SpeedLine, speed_lines, speed_markdown
from fullmatch.reproduce.tables import make_notes, markdown_rows, to_markdown
from fullmatch.storage.atomic import write_text

BEGIN = "<!-- results: begin (written by `make results`; change nothing between the marks) -->"
END = "<!-- results: end -->"
IMAGES = "images"  # folder of the page's pictures, beside it
MIN_METHODS = {1: 1, 2: 1, 3: 3, 4: 2}  # that a cell needs for the table to be informative


def update_page(page: Path, ledger: Ledger) -> None:
    """Replace everything between the two markers."""
    before, after = split_page(page)
    if not ledger.folder.is_dir():  # else a typo would empty the page
        raise UserError(f"{ledger.folder} is not a folder of results; choose one with --ledger")
    folder = os.path.relpath(ledger.folder, page.parent)  # as the page's links need it
    body = render_results(ledger.entries(), Path(folder))
    write_text(page, f"{before}{BEGIN}\n\n{body}\n{END}{after}")


def split_page(page: Path) -> tuple[str, str]:
    """The text before the first marker and after the second."""
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"cannot read {page}: {error.strerror}; choose a page with --page"
        ) from None
    except UnicodeDecodeError:
        raise UserError(f"{page} is not UTF-8 text; choose another page with --page") from None
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(
            f"{page} does not have the markers {BEGIN!r} and {END!r}; add them where the tables "
            "should go"
        )
    return before, after


def render_results(entries: Sequence[LedgerEntry], folder: Path) -> str:
    """The tables, then a list of the runs; depends on nothing but the ledger."""
    if not entries:
        return "Nothing has been recorded yet.\n"
    benchmarks = benchmark_entries(entries)
    tables = [text for table in TABLES.values() if (text := render_table(table, benchmarks))]
    speed = render_speed(recorded_speeds(benchmarks))
    return "\n".join([*tables, *speed, "### Runs\n", *list_runs(entries, folder), ""])


def recorded_speeds(entries: Sequence[LedgerEntry]) -> list[SpeedLine]:
    """Accuracy against minutes, of cells that have any runs by the settings of a budget."""
    lines: list[SpeedLine] = []
    for cell in cells_of(entries):
        found = speed_lines(SPEED.rows, [cell], entries)
        lines += found if any(line.entries for line in found) else []
    return lines


def render_speed(lines: Sequence[SpeedLine]) -> list[str]:
    from fullmatch.reproduce.figures.minutes import group_lines

    if not lines:
        return []
    links = [
        f"![{SPEED.title}, {group[0].cell}, {group[0].device}]({IMAGES}/{stem}.png)\n"
        for stem, group in group_lines(lines).items()
    ]
    return [f"### Speed: {SPEED.title.lower()}\n", speed_markdown(lines), *links]


def draw_speed(page: Path, ledger: Ledger) -> list[Path]:
    """The pictures that the page links to."""
    from fullmatch.reproduce.figures.minutes import draw_minutes

    lines = recorded_speeds(benchmark_entries(ledger.entries()))
    return draw_minutes(page.parent / IMAGES, lines, ("png",))


def benchmark_entries(entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Runs on a user's own pictures are not in the tables, since others cannot repeat them.

    Neither are runs without a number of labels, which have no cell.
    """
    return [entry for entry in entries if entry.data in DATASETS and entry.labels]


def cells_of(entries: Sequence[LedgerEntry]) -> list[TableCell]:
    return sorted({cell_of(entry) for entry in entries}, key=lambda cell: (cell.data, cell.labels))


def render_table(table: PaperTable, entries: Sequence[LedgerEntry]) -> str | None:
    """A table of the lines that have runs; None if there are too few."""
    cells = cells_of(entries)
    rows = [*table.rows, *(other_methods(entries) if table.number == 1 else ())]
    lines: list[TableLine] = []
    for cell in cells if table.number != 2 else table.cells:
        run = [line for line in build_lines(table, rows, [cell], entries) if line.steps is not None]
        if len({line.row.name for line in run}) >= MIN_METHODS[table.number]:
            lines += run
    if not lines:
        return None
    notes = "\n".join(f"- {note}" for note in make_notes(lines))
    return f"### Table {table.number}: {table.title}\n\n{to_markdown(lines)}\n{notes}\n"


def cell_of(entry: LedgerEntry) -> TableCell:
    return TableCell(entry.data, entry.labels or 0)


def other_methods(entries: Sequence[LedgerEntry]) -> list[TableRow]:
    """Methods with runs that no table of the paper has."""
    paper_rows = [row for table in TABLES.values() for row in table.rows]
    names: set[str] = set()
    for entry in entries:
        algorithm, cell = entry.algorithm, cell_of(entry)
        name = f"full-{algorithm['name']}" if "full" in algorithm else str(algorithm["name"])
        # Runs with other weights of the losses have no row, since the name would not say so.
        if is_run_of(entry, TableRow(name, name), cell) and not any(
            is_run_of(entry, row, cell) for row in paper_rows
        ):
            names.add(name)
    return [TableRow(algorithm_name(name), name) for name in sorted(names)]


def list_runs(entries: Sequence[LedgerEntry], folder: Path) -> list[str]:
    """Every run: what made it, how long it took, and a link to its file."""
    headings = ("run", "date", "commit", "device", "steps/s", "minutes", "command")
    return markdown_rows(headings, [describe_run(entry, folder) for entry in entries])


def describe_run(entry: LedgerEntry, folder: Path) -> tuple[str, ...]:
    commit = f"`{entry.commit[:7]}`" if entry.commit else "unknown"
    speed = entry.steps_per_second
    return (
        f"[{entry.name}]({quote((folder / entry.name).as_posix())}.json)",
        entry.date,
        f"{commit} and changes" if entry.dirty else commit,
        entry.device,
        "-" if speed is None else f"{speed:.1f}",
        f"{entry.seconds / 60:.1f}",
        f"`{entry.command}`",
    )
