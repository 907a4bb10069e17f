"""The page of results: tables of all that the ledger holds, written between two marks."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fullmatch.data import DATASETS
from fullmatch.errors import UserError
from fullmatch.reproduce.grid import TABLES, Cell, Row, Table
from fullmatch.reproduce.ledger import Ledger
from fullmatch.reproduce.lines import Line, belongs, lines
from fullmatch.reproduce.tables import markdown, markdown_rows, notes
from fullmatch.storage.atomic import aside

BEGIN = "<!-- results: begin (written by `make results`; change nothing between the marks) -->"
END = "<!-- results: end -->"
LEAST = {1: 1, 2: 1, 3: 3, 4: 2}  # methods that a cell must have for a table to say something


def update(page: Path, ledger: Ledger) -> None:
    """Replace what stands between the marks."""
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read the page {page}: {error.strerror}; check its path") from None
    except UnicodeDecodeError:
        raise UserError(f"the page {page} is no text in UTF-8; name another with --page") from None
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"{page} lacks the marks {BEGIN!r} and {END!r}; put them where tables go")
    if not ledger.folder.is_dir():  # else a slip of the finger would empty the page
        raise UserError(f"{ledger.folder} is no folder of results; name one with --ledger")
    folder = os.path.relpath(ledger.folder, page.parent)  # as the page's links need it
    body = results(ledger.entries(), Path(folder))
    try:
        with aside(page) as place:  # what people wrote around the marks must not be lost
            place.write_text(f"{before}{BEGIN}\n\n{body}\n{END}{after}", encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write the page {page}: {error.strerror}") from None


def results(entries: Sequence[dict[str, Any]], folder: Path) -> str:
    """Tables of what was run, then the runs; a function of the ledger alone."""
    if not entries:
        return "Nothing has been recorded yet.\n"
    # Somebody's own pictures are in no table: nobody else has them.
    # Neither is what was trained without a number of labels: it has no cell.
    used = [(entry, entry["config"]["data"]) for entry in entries]
    known = [entry for entry, data in used if data["name"] in DATASETS and data.get("labels")]
    parts = [part for table in TABLES.values() if (part := section(table, known))]
    return "\n".join([*parts, "### Runs\n", *run_list(entries, folder), ""])


def section(table: Table, entries: Sequence[dict[str, Any]]) -> str | None:
    """A table of the lines that were run; None where there are none of its own."""
    cells = sorted({cell_of(entry) for entry in entries}, key=lambda cell: (cell.data, cell.labels))
    rows = [*table.rows, *(others(entries) if table.number == 1 else ())]
    found: list[Line] = []
    for cell in cells if table.number != 2 else table.cells:
        run = [line for line in lines(table, rows, [cell], entries) if line.steps is not None]
        if len({line.row.name for line in run}) >= LEAST[table.number]:
            found += run
    if not found:
        return None
    words = "\n".join(f"- {note}" for note in notes(found))
    return f"### Table {table.number}: {table.title}\n\n{markdown(found)}\n{words}\n"


def cell_of(entry: dict[str, Any]) -> Cell:
    return Cell(entry["config"]["data"]["name"], entry["config"]["data"]["labels"])


def others(entries: Sequence[dict[str, Any]]) -> list[Row]:
    """Methods that were run and that no table of the paper has."""
    known = [row for table in TABLES.values() for row in table.rows]
    named: set[str] = set()
    for entry in entries:
        algorithm, cell = entry["config"]["algorithm"], cell_of(entry)
        name = f"full-{algorithm['name']}" if "full" in algorithm else algorithm["name"]
        # Losses with weights of their own, say, are no row that a name would tell.
        if belongs(entry, Row(name, name), cell) and not any(
            belongs(entry, row, cell) for row in known
        ):
            named.add(name)
    return [Row(name, name) for name in sorted(named)]


def run_list(entries: Sequence[dict[str, Any]], folder: Path) -> list[str]:
    """Every run: who made it, how long it took, and the file with the rest."""
    headings = ("run", "date", "commit", "device", "steps/s", "minutes", "command")
    rows: list[tuple[str, ...]] = []
    for entry in entries:
        commit = f"`{entry['commit'][:7]}`" if entry["commit"] else "unknown"
        if entry["dirty"]:
            commit += " and changes"
        speed = entry["steps_per_second"]
        rows.append(
            (
                f"[{entry['name']}]({quote((folder / entry['name']).as_posix())}.json)",
                entry["date"],
                commit,
                entry["device"],
                "-" if speed is None else f"{speed:.1f}",
                f"{entry['seconds'] / 60:.1f}",
                f"`{entry['command']}`",
            )
        )
    return markdown_rows(headings, rows)
