"""The table of labels: every picture of the data a row, so that training reads nothing else."""

import csv
import os
from collections.abc import Iterable
from pathlib import Path

from fullmatch.data.dataset import class_order
from fullmatch.data.sources.folders import picture_files
from fullmatch.data.sources.listing import Survey
from fullmatch.data.sources.survey import survey
from fullmatch.data.sources.tables import UNLABELED, located, rows, survey_csv
from fullmatch.errors import UserError
from fullmatch.inference.contact_sheet import reference
from fullmatch.storage.atomic import aside

HEADER = ("path", "label", "split")
LONGEST = 100  # characters of a class name


def pictures_of(data: Path) -> Survey:
    """The pictures of a folder or CSV; those that lie directly in a folder are unlabeled."""
    if not data.exists():
        raise UserError(f"no such folder or file: {data}; check the path")
    if not data.is_dir():
        if data.suffix.lower() != ".csv":
            raise UserError(f"{data} has no picture files to label; give a folder or a CSV")
        return survey(data)
    loose = [path for path in picture_files(data) if Path(path).parent == data]
    try:
        found = survey(data)
    except UserError:
        if not loose:
            raise
        found = Survey(labeled=[], unlabeled=[], test=[])
    found.unlabeled += loose
    return found


def table_of(data: Path, out: Path | None) -> Path:
    """Where the labels go: as asked, or labels.csv beside the data."""
    return out or Path(os.path.abspath(data)).parent / "labels.csv"


class Labels:
    """What is known of each picture; every change is on the disk before it counts."""

    def __init__(self, table: Path, pictures: Survey) -> None:
        self.table = table
        found = entries(pictures)
        self.rows = {path: entry for path, entry in found.items() if writable(path)}
        self.names = {path: reference(path, table.parent) for path in self.rows}
        self.classes = list(class_order({*pictures.empty, *self.known()}))
        self.notes: list[str] = []
        if odd := len(found) - len(self.rows):
            self.notes.append(f"{odd} pictures left out: their names are not UTF-8")
        self.seen: tuple[int, int] | None = None
        if table.exists():
            self.continue_table()

    def known(self) -> list[str]:
        """Labels of the training pictures."""
        return [label for label, split in self.rows.values() if label and not split]

    def unlabeled(self) -> list[str]:
        return [path for path, (label, split) in self.rows.items() if not label and not split]

    def continue_table(self) -> None:
        """Takes over what a table written before says of its pictures: labels, and those taken
        away, and which are for the test. Refuses a table of other pictures, or of contradictions.
        """
        with self.table.open(encoding="utf-8-sig", errors="replace") as file:
            columns = {name.strip().lower() for name in file.readline().split(",")}
        if more := sorted(columns - set(HEADER)):
            raise UserError(
                f"{self.table} has a column {more[0]!r} that would be lost; name another with --out"
            )
        self.seen = stamp(self.table)
        found = survey_csv(self.table) if rows(self.table) else Survey([], [], [])
        for _, dispute in found.disputed:
            raise UserError(dispute)
        gone = 0
        for path, entry in entries(found).items():
            if path in self.rows:
                self.rows[path] = entry
            elif os.path.exists(path):
                raise UserError(
                    f"{self.table} lists {path}, which is not in this data; "
                    "name another file with --out"
                )
            else:
                gone += 1
        if gone:
            self.notes.append(f"{gone} pictures of {self.table} are gone: their rows are dropped")
        self.add_classes(self.known())

    def add_classes(self, names: Iterable[str]) -> None:
        self.classes += class_order(set(names) - set(self.classes))

    def take(self, other: Path) -> int:
        """Labels from another table, by path; returns how many pictures got one."""
        found = {
            os.path.abspath(located(other.parent, name)): label
            for _, name, label, _ in rows(other)
            if label
        }
        if strange := [path for path in found if path not in self.rows]:
            raise UserError(f"{other} labels {strange[0]}, which is not in this data; check paths")
        changed = {p: label for p, label in found.items() if self.rows[p][0] != label}
        before = dict(self.rows)
        for path, label in changed.items():
            self.rows[path] = (label, self.rows[path][1])
        self.save(before)
        self.add_classes(found.values())
        return len(changed)

    def put(self, path: str, label: str) -> None:
        """Label a picture; '' takes its label away."""
        before = dict(self.rows)
        self.rows[path] = (label, self.rows[path][1])
        self.save(before)

    def save(self, before: dict[str, tuple[str, str]]) -> None:
        """Replace the table at once; if that fails, everything is as before."""
        try:
            if stamp(self.table) != self.seen:
                raise UserError(
                    f"{self.table} was changed by another program; stop with Ctrl-C, start again"
                )
            with (
                aside(self.table) as place,
                place.open("w", encoding="utf-8", newline="") as file,
            ):
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(HEADER)
                for path, (label, split) in self.rows.items():
                    writer.writerow((self.names[path], label, split))
                file.flush()
                os.fsync(file.fileno())
            self.seen = stamp(self.table)
        except (OSError, UserError) as error:
            self.rows = before
            if isinstance(error, UserError):
                raise
            raise UserError(f"cannot write {self.table}: {error.strerror}; use --out") from None


def entries(pictures: Survey) -> dict[str, tuple[str, str]]:
    """Label and split of every picture, by its whole path."""
    return {
        os.path.abspath(path): (label, "test" if part == "test" else "")
        for path, part, label in pictures.items()
    }


def class_name(typed: str) -> str:
    """A class as it is written in the table, or an error that says what is wrong with it."""
    name = " ".join(typed.split())
    if not name or name.lower() in UNLABELED:
        raise UserError(f"{name!r} would mean unlabeled; give the class another name")
    if len(name) > LONGEST or not name.isprintable() or not writable(name):
        raise UserError(f"use a name of up to {LONGEST} ordinary characters")
    return name


def writable(name: str) -> bool:
    """Whether it can be written as UTF-8; names of files may be any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def stamp(path: Path) -> tuple[int, int] | None:
    """Changes when the file does."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_ino
