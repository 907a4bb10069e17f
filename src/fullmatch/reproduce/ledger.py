"""The ledger: one JSON file per finished run, small enough to keep beside the code."""

import json
from dataclasses import dataclass
from pathlib import Path

from fullmatch.errors import UserError
from fullmatch.reproduce.entry import FORMAT, LedgerEntry, dump_entry, entry_table, parse_entry
from fullmatch.storage.atomic import explained_errors, write_text
from fullmatch.storage.json_files import read_json
from fullmatch.storage.run_folder import read_file

# Facts about a result that are not part of it.
PROVENANCE = ("commit", "dirty", "code", "date", "notes")


@dataclass(frozen=True)
class Ledger:
    """A folder of entries."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def has(self, name: str) -> bool:
        return self.path(name).exists()

    def add(self, entry: LedgerEntry) -> Path:
        """Write an entry; another result of the same name is never overwritten."""
        path, text = self.path(entry.name), dump_entry(entry)
        if path.exists() and dump_entry(old := read_entry(path)) != text:
            raise explain_conflict(path, old, entry)
        with explained_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
        return path

    def entries(self) -> list[LedgerEntry]:
        """All entries, by name."""
        if self.folder.is_file():
            raise UserError(f"{self.folder} is a file; the ledger is a folder of results")
        return [read_entry(path) for path in sorted(self.folder.glob("*.json"))]


def read_entry(path: Path) -> LedgerEntry:
    advice = "remove it, or record the run again"
    if not path.exists():
        raise UserError(f"there is no file {path}; check the path")

    def read(path: Path) -> LedgerEntry:
        table = read_json(path)
        if isinstance(table.get("format"), int) and table["format"] != FORMAT:
            raise UserError(f"{path} was written by another version of fullmatch; {advice}")
        return parse_entry(table)

    return read_file(path, read, advice)


def explain_conflict(path: Path, old: LedgerEntry, new: LedgerEntry) -> UserError:
    """The name is taken by another result, or by the same one with other facts about it."""
    before, after = fields_as_json(old), fields_as_json(new)
    differing = [name for name in after if before[name] != after[name]]
    if not set(differing) <= set(PROVENANCE):
        return UserError(
            f"{path} already holds another result; rename the run folder, or remove the file"
        )
    differences = [
        f"{name} {format_field(old, name)} instead of {format_field(new, name)}"
        for name in differing
        if name != "notes"
    ]
    differences += ["other notes"] if "notes" in differing else []
    return UserError(
        f"{path} already holds the same result, with {', '.join(differences)}; "
        "if the new one is right, remove the file and record the run again"
    )


def fields_as_json(entry: LedgerEntry) -> dict[str, str]:
    """Every field as JSON, in which NaN equals NaN."""
    return {name: json.dumps(value) for name, value in entry_table(entry).items()}


def format_field(entry: LedgerEntry, name: str) -> str:
    value = getattr(entry, name)
    return "unknown" if value is None else str(value)
