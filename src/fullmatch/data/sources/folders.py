"""The user's pictures in folders: one folder per class, and one of unlabeled pictures."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from fullmatch.data.dataset import Source, clean_class_name, sort_classes
from fullmatch.data.sources.picture_files import PictureSurvey
from fullmatch.data.stores.pictures import EXTENSIONS
from fullmatch.errors import UserError, pluralize

LABELED = frozenset(("labeled", "labelled"))
UNLABELED = frozenset(("unlabeled", "unlabelled", "_unlabeled", "_unlabelled"))
IGNORED = frozenset(("thumbs.db", "desktop.ini", "__macosx"))


class _Layout(NamedTuple):
    """Which folder plays which part."""

    class_root: Path  # holds the class folders: `labeled`, or the folder itself
    classes: dict[str, Path]
    unlabeled: list[Path]
    test: Path | None
    unknown: list[Path]  # folders beside `labeled` that play no part


def from_folder(
    folder: Path,
    *,
    size: int | None = None,
    max_bytes: int | None = None,
    unknown_classes: Collection[str] = (),
) -> Source:
    """Load a source from `labeled/<class>/*`, `unlabeled/**` and, optionally, `test/<class>/*`.

    Class folders may also lie directly in the folder, next to one called `unlabeled`. Pictures are
    kept in memory up to `max_bytes`. Only `unknown_classes` may be in `test` alone.
    """
    survey = survey_folder(folder)
    if survey.empty_classes:
        raise UserError(
            f"no picture in {', '.join(survey.empty_classes.values())}; give every class "
            "at least one labeled picture, or remove the folder"
        )
    if survey.skipped:
        survey.notes.append(f"{describe_skipped(survey.skipped)}: left out")
    return survey.to_source(
        folder.resolve().name or "pictures",
        size,
        max_bytes=max_bytes,
        unknown_classes=unknown_classes,
    )


def survey_folder(folder: Path) -> PictureSurvey:
    """List the pictures of a folder by part and class, and what lies outside of these."""
    layout = _find_layout(folder)
    skipped: dict[str, str] = {}
    survey = PictureSurvey(
        labeled=_list_classes(layout.classes, skipped),
        unlabeled=[path for heap in layout.unlabeled for path in find_pictures(heap, skipped)],
        test=_list_classes(_subfolders(layout.test), skipped) if layout.test else [],
        skipped=skipped,
    )
    if not survey.labeled and not survey.unlabeled:
        raise no_pictures_error(folder)
    filled = {label for _, label in survey.labeled}
    survey.empty_classes = {
        name: str(layout.classes[name])
        for name in sort_classes(layout.classes)
        if name not in filled
    }
    _note_outside(survey, folder, layout)
    return survey


def find_pictures_outside(survey: PictureSurvey) -> list[str]:
    """Pictures in places that training ignores, except those that a link makes part of the data."""
    outside = [path for place in survey.unknown_folders for path in find_pictures(Path(place))]
    outside += survey.loose_pictures
    used = {os.path.realpath(path) for path, _, _ in survey.items()} if outside else set()
    return sorted(path for path in outside if os.path.realpath(path) not in used)


def find_pictures(folder: Path, skipped: dict[str, str] | None = None) -> list[str]:
    """Every picture below the folder, sorted; `skipped` collects other files with their kind."""
    paths: list[str] = []
    # Links may lead back up: enter each real folder once, and none that contains this one.
    visited = {str(parent) for parent in folder.resolve().parents}
    pending = [str(folder)]
    while pending:
        place = pending.pop()
        real_path = os.path.realpath(place)
        if real_path in visited:
            continue
        visited.add(real_path)
        subfolders = []
        for entry in _scan(place):
            if _is_true(entry.is_dir):
                subfolders += [] if _is_hidden(entry.name) else [entry.path]
            elif kind := _kind_if_not_picture(entry):
                if skipped is not None and not _is_hidden(entry.name):
                    skipped[entry.path] = kind
            else:
                paths.append(entry.path)
        pending += reversed(subfolders)
    return paths


def describe_skipped(skipped: Mapping[str, str]) -> str:
    """How many files are not pictures, and of which kinds they are."""
    kinds = Counter(skipped.values()).most_common(5)
    listed = ", ".join(f"{kind} {count}" for kind, count in kinds)
    return f"{pluralize(skipped, 'non-picture file')} ({listed})"


def no_pictures_error(folder: Path) -> UserError:
    """The error for a folder that holds neither labeled nor unlabeled pictures."""
    expected = "labeled/<class>/*.jpg and unlabeled/*.jpg"
    if loose := sum(_is_picture(path.name) for path in folder.iterdir()):
        return UserError(
            f"{pluralize(loose, 'picture')} directly in {folder}, and no class folders; "
            f"expected {expected}"
        )
    others = ", ".join(sorted(EXTENSIONS - {".jpg"}))
    return UserError(f"no pictures in {folder}; expected {expected} (or {others})")


def _find_layout(folder: Path) -> _Layout:
    parts = _subfolders(folder)
    class_root = next((parts[name] for name in parts if name.casefold() in LABELED), folder)
    tests = [parts[name] for name in parts if name.casefold() == "test"]
    # Without a folder `labeled`, `test` may be a class: the test part has subfolders.
    test = next((path for path in tests if class_root != folder or _subfolders(path)), None)
    members = _subfolders(class_root)
    classes = {
        name: path
        for name, path in members.items()
        if name.casefold() not in UNLABELED and path != test
    }
    everywhere = [*parts.items(), *members.items()]
    unlabeled = [*dict.fromkeys(path for name, path in everywhere if name.casefold() in UNLABELED)]
    used = {class_root, test, *unlabeled}
    unknown = [path for path in parts.values() if path not in used]
    return _Layout(class_root, classes, unlabeled, test, unknown if class_root != folder else [])


def _note_outside(survey: PictureSurvey, folder: Path, layout: _Layout) -> None:
    """Note folders that play no part, and pictures outside the class folders."""
    if layout.unknown:
        names = ", ".join(sorted(path.name for path in layout.unknown))
        survey.notes.append(f"folders other than labeled, unlabeled and test left out: {names}")
        survey.unknown_folders = [str(path) for path in layout.unknown]
    for place in dict.fromkeys((folder, layout.class_root, layout.test)):
        files = [path for path in place.iterdir() if path.is_file()] if place else []
        if loose := [str(path) for path in files if _is_picture(path.name)]:
            survey.notes.append(
                f"{pluralize(loose, 'picture')} directly in {place}, outside the class folders: "
                "left out"
            )
            survey.loose_pictures += loose


def _scan(place: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise _permission_error(error) from None


def _kind_if_not_picture(entry: os.DirEntry[str]) -> str:
    """'' for a picture, else the kind of file."""
    if not _is_picture(entry.name):
        return _extension(entry.name) or "no extension"
    # A pipe or device would block the reader; a broken link is reported as unreadable later.
    if not _is_true(entry.is_file) and os.path.exists(entry.path):
        return "not a regular file"
    return ""


def _is_true(question: Callable[[], bool]) -> bool:
    """Ask a directory entry; a link that points to itself counts as neither file nor folder."""
    try:
        return question()
    except OSError:
        return False


def _list_classes(folders: dict[str, Path], skipped: dict[str, str]) -> list[tuple[str, str]]:
    return [
        (path, name)
        for name in sort_classes(folders)
        for path in find_pictures(folders[name], skipped)
    ]


def _subfolders(folder: Path) -> dict[str, Path]:
    try:
        paths = [path for path in folder.iterdir() if path.is_dir() and not _is_hidden(path.name)]
    except OSError as error:
        raise _permission_error(error) from None
    subfolders: dict[str, Path] = {}
    for path in sorted(paths):
        name = clean_class_name(path.name)
        if not name:
            raise UserError(f"{folder} has a folder whose name is only blanks; rename it")
        if name in subfolders:
            raise UserError(
                f"{folder} has two folders called {name!r}, written with different characters or "
                "blanks; merge them"
            )
        subfolders[name] = path
    return subfolders


def _is_picture(name: str) -> bool:
    return _extension(name) in EXTENSIONS and not _is_hidden(name)


def _extension(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name.lower() in IGNORED


def _permission_error(error: OSError) -> UserError:
    return UserError(f"cannot open {error.filename}: {error.strerror}; check its permissions")
