"""The table of labels, with a row for every picture, so that training needs no other file."""

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from fullmatch.data.dataset import clean_class_name, sort_classes
from fullmatch.data.sources.csv_cells import neutralize_cell
from fullmatch.data.sources.folders import find_pictures
from fullmatch.data.sources.picture_files import PictureSurvey
from fullmatch.data.sources.survey import survey_pictures
from fullmatch.data.sources.tables import UNLABELED, read_rows, resolve_path, survey_csv
from fullmatch.errors import UserError, pluralize
from fullmatch.inference.contact_sheet import path_in_csv
from fullmatch.storage.atomic import replacing_chosen

HEADER = ("path", "label", "split")
LONGEST_NAME = 100  # characters of a class name


class Row(NamedTuple):
    """What the table says about a picture."""

    label: str  # '' if unlabeled
    split: str  # 'test', or '' for training


def list_pictures(data: Path) -> PictureSurvey:
    """The pictures of a folder or CSV; those directly in the folder count as unlabeled."""
    if not data.exists():
        raise UserError(f"no such folder or file: {data}; check the path")
    if not data.is_dir():
        if data.suffix.lower() != ".csv":
            raise UserError(f"{data} has no picture files to label; give a folder or a CSV")
        return survey_pictures(data)
    loose = [path for path in find_pictures(data) if Path(path).parent == data]
    try:
        survey = survey_pictures(data)
    except UserError:
        if not loose:
            raise
        survey = PictureSurvey(labeled=[], unlabeled=[], test=[])
    survey.unlabeled += loose
    return survey


def default_table(data: Path) -> Path:
    """labels.csv next to the data."""
    return Path(os.path.abspath(data)).parent / "labels.csv"


class LabelTable:
    """The label and split of every picture; each change is on disk before it counts."""

    def __init__(self, path: Path, survey: PictureSurvey) -> None:
        self.path = path
        rows = rows_by_path(survey)
        self.rows = {picture: row for picture, row in rows.items() if is_utf8(picture)}
        self.names = {picture: path_in_csv(picture, path.parent) for picture in self.rows}
        self.classes = list(sort_classes({*survey.empty_classes, *self.labels()}))
        self.notes: list[str] = []
        if left_out := len(rows) - len(self.rows):
            self.notes.append(f"{pluralize(left_out, 'picture')} left out: file name is not UTF-8")
        self.stamp: tuple[int, int] | None = None  # of the file as last read or written
        if path.exists():
            self.read_existing()

    def labels(self) -> list[str]:
        """Labels of the training pictures."""
        return [label for label, split in self.rows.values() if label and not split]

    def labeled(self) -> list[str]:
        """Training pictures with a label."""
        return [path for path, (label, split) in self.rows.items() if label and not split]

    def unlabeled(self) -> list[str]:
        return [path for path, (label, split) in self.rows.items() if not label and not split]

    def read_existing(self) -> None:
        """Continue a table: its labels and test rows win over the folders.

        `UserError` if it is about other pictures, contradicts itself, or has other columns.
        """
        self.check_columns()
        self.stamp = file_stamp(self.path)
        has_rows = bool(read_rows(self.path))
        survey = survey_csv(self.path) if has_rows else PictureSurvey([], [], [])
        for _, message in survey.conflicts:
            raise UserError(message)
        missing = 0
        for picture, row in rows_by_path(survey).items():
            if picture in self.rows:
                self.rows[picture] = row
            elif os.path.exists(picture):
                raise UserError(
                    f"{self.path} lists {picture}, which is not in this data; "
                    "name another file with --out"
                )
            else:
                missing += 1
        if missing:
            self.notes.append(f"{pluralize(missing, 'row')} of {self.path} dropped: file not found")
        self.add_classes(self.labels())

    def check_columns(self) -> None:
        with self.path.open(encoding="utf-8-sig", errors="replace") as file:
            columns = {name.strip().lower() for name in file.readline().split(",")}
        if extra := sorted(columns - set(HEADER)):
            raise UserError(
                f"{self.path} has a column {extra[0]!r} that would be lost; "
                "name another file with --out"
            )

    def add_classes(self, names: Iterable[str]) -> None:
        self.classes += sort_classes(set(names) - set(self.classes))

    def import_labels(self, other: Path) -> int:
        """Copy labels from another table, by path; return how many pictures got a new one."""
        labels = {
            os.path.abspath(resolve_path(other.parent, row.path)): row.label
            for row in read_rows(other)
            if row.label
        }
        if unknown := [path for path in labels if path not in self.rows]:
            raise UserError(
                f"{other} labels {unknown[0]}, which is not in this data; check the paths"
            )
        changed = {path: label for path, label in labels.items() if self.rows[path].label != label}
        before = dict(self.rows)
        for path, label in changed.items():
            self.rows[path] = self.rows[path]._replace(label=label)
        self.save(before)
        self.add_classes(labels.values())
        return len(changed)

    def set_label(self, picture: str, label: str) -> None:
        """Label a picture; '' removes its label."""
        before = dict(self.rows)
        self.rows[picture] = self.rows[picture]._replace(label=label)
        self.save(before)

    def save(self, before: dict[str, Row]) -> None:
        """Replace the file at once; if that fails, go back to the rows of before."""
        try:
            if file_stamp(self.path) != self.stamp:
                raise UserError(
                    f"{self.path} was changed by another program; stop with Ctrl-C, start again"
                )
            self.write()
        except UserError:
            self.rows = before
            raise
        except OSError as error:
            self.rows = before
            raise UserError(
                f"cannot write {self.path}: {error.strerror}; fix that, or name another file "
                "with --out"
            ) from None

    def write(self) -> None:
        with (
            replacing_chosen(self.path) as place,
            place.open("w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEADER)
            for picture, (label, split) in self.rows.items():
                writer.writerow((self.names[picture], neutralize_cell(label), split))
            file.flush()
            os.fsync(file.fileno())
        self.stamp = file_stamp(self.path)


def rows_by_path(survey: PictureSurvey) -> dict[str, Row]:
    """Rows by absolute path."""
    return {
        os.path.abspath(path): Row(label, "test" if part == "test" else "")
        for path, part, label in survey.items()
    }


def parse_class_name(typed: str) -> str:
    """A class name as written in the table; `UserError` if it cannot be one."""
    name = clean_class_name(typed)
    if not name or name.lower() in UNLABELED:
        raise UserError(f"{name!r} would mean unlabeled; choose another class name")
    if len(name) > LONGEST_NAME or not name.isprintable() or not is_utf8(name):
        raise UserError(f"use a name of up to {LONGEST_NAME} printable characters")
    return name


def is_utf8(name: str) -> bool:
    """Whether it can be written as UTF-8; file names may be any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def file_stamp(path: Path) -> tuple[int, int] | None:
    """Changes when the file does; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_ino
