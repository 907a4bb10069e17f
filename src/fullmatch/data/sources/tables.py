"""The user's own pictures, listed in a CSV file with the columns path and label."""

import csv
import os
from pathlib import Path

from fullmatch.data.dataset import Source
from fullmatch.data.sources.listing import Survey
from fullmatch.errors import UserError

UNLABELED = frozenset(("", "-1", "-1.0", "nan"))
TRAIN = frozenset(("", "train", "labeled", "unlabeled"))


def from_csv(path: Path, *, size: int | None = None) -> Source:
    """A source from rows `path,label`; an empty label, -1 or nan means unlabeled.

    Paths are relative to the CSV file. A third column, `split`, marks rows of the test by `test`.
    """
    found = survey_csv(path)
    for _, dispute in found.disputed:
        raise UserError(dispute)
    return found.source(path.stem, size)


def survey_csv(path: Path) -> Survey:
    """The pictures of a table by what its rows say of them, and rows that contradict others."""
    entries: dict[str, tuple[str, bool]] = {}  # label and whether it is for the test
    disputed: list[tuple[str, str]] = []
    for line, name, label, part in rows(path):
        if not name:
            raise UserError(f"{path}, line {line}: no path; give one or remove the line")
        if part not in TRAIN and part != "test":
            raise UserError(f"{path}, line {line}: split is {part!r}; write test or train")
        if part == "test" and not label:
            raise UserError(f"{path}, line {line}: a test picture needs a label")
        file = located(path.parent, name)
        entry = (label, part == "test")
        before = entries.setdefault(file, entry)
        where = f"{path}, line {line}: {name}"
        if before[1] != entry[1]:
            disputed.append((file, f"{where} is both in the test and in the training"))
        elif before[0] and label and before[0] != label:
            disputed.append((file, f"{where} is labeled {before[0]!r} and {label!r}; keep one"))
        else:
            entries[file] = (before[0] or label, entry[1])
    if not entries:
        raise no_rows(path)
    return Survey(
        labeled=[(file, label) for file, (label, test) in entries.items() if label and not test],
        unlabeled=[file for file, (label, _) in entries.items() if not label],
        test=[(file, label) for file, (label, test) in entries.items() if test],
        disputed=disputed,
    )


def no_rows(path: Path) -> UserError:
    return UserError(f"{path} has no rows; add lines of path,label below its header")


def rows(path: Path) -> list[tuple[int, str, str, str]]:
    """Line number, path, label ('' when unlabeled) and split of every row that is not blank."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip().lower() for name in next(reader, [])]
            if not {"path", "label"} <= set(header):
                raise UserError(
                    f"{path}: the first line must name the columns path and label "
                    f"(separated by commas), it is {','.join(header)[:80]!r}"
                )
            found = []
            for cells in reader:
                row = dict(zip(header, (cell.strip() for cell in cells), strict=False))
                if any(row.values()):
                    label = row.get("label", "")
                    label = "" if label.lower() in UNLABELED else label
                    part = row.get("split", "").lower()
                    found.append((reader.line_num, row.get("path", ""), label, part))
            return found
    except UnicodeDecodeError:
        raise UserError(f"{path} is not written in UTF-8; save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise UserError(f"{path} is not a CSV file ({error}); save it again as CSV") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check the file") from None


def located(folder: Path, name: str) -> str:
    """The named file, where a name written on Windows counts as well; one spelling for each."""
    path = folder / name
    if "\\" in name and not path.exists():
        path = folder / name.replace("\\", "/")
    return os.path.normpath(path)
