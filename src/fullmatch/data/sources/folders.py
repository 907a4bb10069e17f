"""The user's own pictures: a folder per class, with unlabeled ones beside them."""

import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from fullmatch.data.dataset import Source, class_order
from fullmatch.data.sources.listing import Survey
from fullmatch.data.stores.pictures import EXTENSIONS
from fullmatch.errors import UserError, many

LABELED = frozenset(("labeled", "labelled"))
UNLABELED = frozenset(("unlabeled", "unlabelled", "_unlabeled", "_unlabelled"))
IGNORED = frozenset(("thumbs.db", "desktop.ini", "__macosx"))


def from_folder(folder: Path, *, size: int | None = None) -> Source:
    """A source from `labeled/<class>/*`, `unlabeled/**` and, where present, `test/<class>/*`.

    Class folders may also lie directly in the folder, with one called `unlabeled` beside them.
    """
    found = survey_folder(folder)
    if found.empty:
        raise UserError(
            f"no picture in {', '.join(found.empty.values())}; give every class "
            "at least one labeled picture, or remove the folder"
        )
    if found.left_out:
        found.notes.append(f"{no_pictures(found.left_out)}: left out")
    return found.source(folder.resolve().name or "pictures", size)


def survey_folder(folder: Path) -> Survey:
    """The pictures of a folder by what their places say of them, and what lies elsewhere."""
    parts = _subfolders(folder)
    home = next((parts[name] for name in parts if name.casefold() in LABELED), folder)
    tests = [parts[name] for name in parts if name.casefold() == "test"]
    # Without a folder of labeled pictures, `test` may be a class: the test part has folders.
    test = next((path for path in tests if home != folder or _subfolders(path)), None)
    members = _subfolders(home)
    classes = {
        name: path
        for name, path in members.items()
        if name.casefold() not in UNLABELED and path != test
    }
    beside = [*parts.items(), *members.items()]
    heaps = dict.fromkeys(path for name, path in beside if name.casefold() in UNLABELED)

    left_out: dict[str, str] = {}
    found = Survey(
        labeled=_by_class(classes, left_out),
        unlabeled=[path for heap in heaps for path in picture_files(heap, left_out)],
        test=_by_class(_subfolders(test), left_out) if test else [],
        left_out=left_out,
    )
    if not found.labeled and not found.unlabeled:
        raise nothing_in(folder)
    held = {label for _, label in found.labeled}
    found.empty = {name: str(classes[name]) for name in class_order(classes) if name not in held}
    known = {home, test, *heaps}
    if home != folder and (strange := [path for path in parts.values() if path not in known]):
        names = ", ".join(sorted(path.name for path in strange))
        found.notes.append(f"left out, being none of labeled, unlabeled, test: {names}")
        found.strange = [str(path) for path in strange]
    for place in dict.fromkeys((folder, home, test)):
        files = [path for path in place.iterdir() if path.is_file()] if place else []
        if loose := [str(path) for path in files if _is_picture(path.name)]:
            found.notes.append(
                f"{many(loose, 'picture')} directly in {place} without a class: left out"
            )
            found.loose += loose
    return found


def pictures_outside(found: Survey) -> list[str]:
    """The pictures where training does not look for any; not those that a link makes part of it."""
    outside = [path for place in found.strange for path in picture_files(Path(place))]
    outside += found.loose
    used = {os.path.realpath(path) for path, _, _ in found.items()} if outside else set()
    return sorted(path for path in outside if os.path.realpath(path) not in used)


def picture_files(folder: Path, left_out: dict[str, str] | None = None) -> list[str]:
    """Every picture below the folder, sorted; what is passed over is kept with its extension."""
    found: list[str] = []
    # Links may lead back up: each real folder is entered once, and none that holds this one.
    seen = {str(above) for above in folder.resolve().parents}
    places = [str(folder)]
    while places:
        place = places.pop()
        real = os.path.realpath(place)
        if real in seen:
            continue
        seen.add(real)
        below = []
        for entry in _entries(place):
            if _holds(entry.is_dir):
                below += [] if _is_hidden(entry.name) else [entry.path]
                continue
            if not _is_picture(entry.name):
                kind = _extension(entry.name) or "no extension"
            elif not _holds(entry.is_file) and os.path.exists(entry.path):
                kind = "no plain file"  # a pipe or a device, which may never have anything to read
            else:
                found.append(entry.path)
                continue
            if left_out is not None and not _is_hidden(entry.name):
                left_out[entry.path] = kind
        places += reversed(below)
    return found


def no_pictures(left_out: Mapping[str, str]) -> str:
    """How many files were passed over, and of which kinds."""
    kinds = Counter(left_out.values()).most_common(5)
    named = ", ".join(f"{kind} {count}" for kind, count in kinds)
    return f"{many(left_out, 'file')}, no pictures by name ({named})"


def _entries(place: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise _closed(error) from None


def _holds(question: Callable[[], bool]) -> bool:
    """What a folder tells of an entry, mostly unseen; a link in a circle is nothing."""
    try:
        return question()
    except OSError:
        return False


def _by_class(folders: dict[str, Path], left_out: dict[str, str]) -> list[tuple[str, str]]:
    return [
        (path, name)
        for name in class_order(folders)
        for path in picture_files(folders[name], left_out)
    ]


def _subfolders(folder: Path) -> dict[str, Path]:
    try:
        paths = [path for path in folder.iterdir() if path.is_dir() and not _is_hidden(path.name)]
    except OSError as error:
        raise _closed(error) from None
    found: dict[str, Path] = {}
    for path in sorted(paths):
        # Composed Unicode, since the same name is stored decomposed by some file systems.
        name = unicodedata.normalize("NFC", path.name)
        if name in found:
            raise UserError(
                f"{folder} has two folders called {name!r}, written with different characters; "
                "put their pictures into one"
            )
        found[name] = path
    return found


def nothing_in(folder: Path) -> UserError:
    """What to say of a folder in which neither labeled nor unlabeled pictures were found."""
    expected = "labeled/<class>/*.jpg and unlabeled/*.jpg"
    if loose := sum(_is_picture(path.name) for path in folder.iterdir()):
        return UserError(
            f"{many(loose, 'picture')} directly in {folder}, and no folders of classes; "
            f"expected {expected}"
        )
    others = ", ".join(sorted(EXTENSIONS - {".jpg"}))
    return UserError(f"no pictures in {folder}; expected {expected} (or {others})")


def _is_picture(name: str) -> bool:
    return _extension(name) in EXTENSIONS and not _is_hidden(name)


def _extension(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.lower() in IGNORED


def _closed(error: OSError) -> UserError:
    return UserError(f"cannot look into {error.filename}: {error.strerror}; check its permissions")
