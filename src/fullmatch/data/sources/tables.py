"""The user's pictures, listed in a CSV file with the columns path and label."""

import csv
import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from fullmatch.data.dataset import Source, clean_class_name
from fullmatch.data.sources.csv_cells import restore_cell
from fullmatch.data.sources.picture_files import PictureSurvey
from fullmatch.errors import UserError
from fullmatch.files.reading import TEXT_LIMIT, UnusableFile, require_regular

UNLABELED = frozenset(("", "-1", "-1.0", "nan"))
TRAIN = frozenset(("", "train", "labeled", "unlabeled"))


class CsvRow(NamedTuple):
    """One row of the CSV file, with its line number for error messages."""

    line: int
    path: str
    label: str  # '' if unlabeled
    split: str  # in lower case


def from_csv(
    path: Path, *, size: int | None = None, unknown_classes: Collection[str] = ()
) -> Source:
    """Load a source from rows `path,label`; an empty label, -1 or nan means unlabeled.

    Paths are relative to the CSV file. An optional third column, `split`, marks test rows by
    `test`. Only `unknown_classes` may have test rows alone.
    """
    survey = survey_csv(path)
    for _, message in survey.conflicts:
        raise UserError(message)
    return survey.to_source(path.stem, size, unknown_classes=unknown_classes)


def survey_csv(path: Path) -> PictureSurvey:
    """List the pictures of a CSV file and the rows that contradict earlier ones."""
    entries: dict[str, tuple[str, bool]] = {}  # file -> label, whether it is for testing
    conflicts: list[tuple[str, str]] = []
    for row in read_rows(path):
        _check_row(path, row)
        file = resolve_path(path.parent, row.path)
        is_test = row.split == "test"
        label, was_test = entries.setdefault(file, (row.label, is_test))
        where = f"{path}, line {row.line}: {row.path}"
        if was_test != is_test:
            conflicts.append((file, f"{where} is listed for both test and training; keep one"))
        elif label and row.label and label != row.label:
            conflicts.append((file, f"{where} is labeled {label!r} and {row.label!r}; keep one"))
        else:
            entries[file] = (label or row.label, is_test)
    if not entries:
        raise no_rows_error(path)
    return PictureSurvey(
        labeled=[(file, label) for file, (label, test) in entries.items() if label and not test],
        unlabeled=[file for file, (label, _) in entries.items() if not label],
        test=[(file, label) for file, (label, test) in entries.items() if test],
        conflicts=conflicts,
    )


def no_rows_error(path: Path) -> UserError:
    return UserError(f"{path} has no rows; add lines of path,label below its header")


def read_rows(path: Path) -> list[CsvRow]:
    """Read every row that is not blank."""
    try:
        require_regular(path, TEXT_LIMIT)
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip().lower() for name in next(reader, [])]
            if not {"path", "label"} <= set(header):
                raise UserError(
                    f"{path}: the first line must name the columns path and label "
                    f"(separated by commas), it is {','.join(header)[:80]!r}"
                )
            rows = []
            for values in reader:
                cells = dict(zip(header, (value.strip() for value in values), strict=False))
                if any(cells.values()):
                    rows.append(_parse_row(reader.line_num, cells))
            return rows
    except UnicodeDecodeError:
        raise UserError(f"{path} is not written in UTF-8; save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise UserError(f"{path} is not a CSV file ({error}); save it again as CSV") from None
    except UnusableFile as error:
        raise UserError(f"{path} is {error}; give a CSV file") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check the file") from None


def resolve_path(folder: Path, name: str) -> str:
    """The file that a row names, in normalized form; backslashes from Windows also work."""
    path = folder / name
    if "\\" in name and not path.exists():
        path = folder / name.replace("\\", "/")
    return os.path.normpath(path)


def _parse_row(line: int, cells: dict[str, str]) -> CsvRow:
    label = clean_class_name(restore_cell(cells.get("label", "")))
    label = "" if label.lower() in UNLABELED else label
    return CsvRow(line, cells.get("path", ""), label, cells.get("split", "").lower())


def _check_row(path: Path, row: CsvRow) -> None:
    if not row.path:
        raise UserError(f"{path}, line {row.line}: no path; add one or remove the line")
    if row.split not in TRAIN and row.split != "test":
        raise UserError(f"{path}, line {row.line}: split is {row.split!r}; write test or train")
    if row.split == "test" and not row.label:
        raise UserError(f"{path}, line {row.line}: a test picture needs a label")
