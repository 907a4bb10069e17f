"""Which pictures there are and what is known of each, before any of them is decoded."""

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fullmatch.data.folders import LABELED, UNLABELED, nothing_in, picture_files
from fullmatch.data.listing import Listing
from fullmatch.data.tables import located, no_rows, rows
from fullmatch.errors import UserError


@dataclass
class Survey(Listing):
    """A listing that keeps what training would refuse, so that it can be told."""

    empty: list[str] = field(default_factory=list)  # classes without a picture
    disputed: list[str] = field(default_factory=list)  # paths that a CSV lists in two ways
    left_out: dict[str, str] = field(default_factory=dict)  # files that are no pictures: their kind
    outside: list[str] = field(default_factory=list)  # pictures where training does not look

    def items(self) -> Iterator[tuple[str, str, str]]:
        """Path, part and label ('' where there is none) of every picture."""
        yield from ((path, "labeled", label) for path, label in self.labeled)
        yield from ((path, "unlabeled", "") for path in self.unlabeled)
        yield from ((path, "test", label) for path, label in self.test)


def survey(path: Path) -> Survey:
    """The pictures of a folder or a CSV, told apart as training tells them apart."""
    found = _of_folder(path) if path.is_dir() else _of_csv(path)
    if not found.labeled and not found.unlabeled:
        if path.is_dir():
            raise nothing_in(path)
        raise UserError(f"no pictures in {path}; expected rows to train on")
    return found


def _of_folder(folder: Path) -> Survey:
    found = Survey(labeled=[], unlabeled=[], test=[])
    tops = _folders(folder)
    home = next((name for name in tops if name.casefold() in LABELED), None)
    place = folder / home if home else folder
    # Without a folder of labeled pictures, `test` may be a class: the test part has folders.
    tested = [name for name in tops if name.casefold() == "test"]
    test = next((name for name in tested if home or _folders(folder / name)), None)

    def placed(path: str) -> tuple[str, str] | None:
        """Part and label by the folders that a file lies in; None where training does not look."""
        top, *below = Path(path).relative_to(folder).parts
        if not below:
            return None
        if top.casefold() in UNLABELED:
            return "unlabeled", ""
        if home is None and top != test:
            return "labeled", _name(top)
        if top not in (home, test) or len(below) < 2:
            return None
        if top == test:
            return "test", _name(below[0])
        if below[0].casefold() in UNLABELED:
            return "unlabeled", ""
        return "labeled", _name(below[0])

    others: dict[str, str] = {}
    for path in picture_files(folder, others):
        match placed(path):
            case "labeled", label:
                found.labeled.append((path, label))
            case "unlabeled", _:
                found.unlabeled.append(path)
            case "test", label:
                found.test.append((path, label))
            case _:
                found.outside.append(path)
    found.left_out = {path: kind for path, kind in others.items() if placed(path)}
    held = {label for _, label in found.labeled}
    special = UNLABELED if home else UNLABELED | {(test or "").casefold()}
    classes = [name for name in _folders(place) if name.casefold() not in special]
    found.empty = [_name(name) for name in classes if _name(name) not in held]
    return found


def _of_csv(path: Path) -> Survey:
    found = Survey(labeled=[], unlabeled=[], test=[])
    seen: dict[str, tuple[str, str]] = {}
    for _, name, label, part in rows(path):
        file, entry = located(path.parent, name), (label, part if part == "test" else "")
        if file not in seen:
            seen[file] = entry
        elif seen[file] != entry:
            found.disputed.append(file)
    if not seen:
        raise no_rows(path)
    for file, (label, part) in seen.items():
        if part == "test":
            found.test.append((file, label))
        elif label:
            found.labeled.append((file, label))
        else:
            found.unlabeled.append(file)
    return found


def _folders(place: Path) -> list[str]:
    try:
        with os.scandir(place) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except OSError as error:
        raise UserError(
            f"cannot look into {place}: {error.strerror}; check its permissions"
        ) from None
    return sorted(name for name in names if not name.startswith((".", "__MACOSX")))


def _name(name: str) -> str:
    # Composed Unicode, since the same name is stored decomposed by some file systems.
    return unicodedata.normalize("NFC", name)
