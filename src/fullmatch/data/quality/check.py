"""Check a user's pictures: find all problems before training, without changing anything."""

from itertools import compress
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from fullmatch.data.dataset import Source
from fullmatch.data.quality.checked_pictures import CheckedPictures
from fullmatch.data.quality.data_check import DataCheck
from fullmatch.data.quality.findings import (
    BLOCKED,
    DataFinding,
    FindingKind,
    PictureEntry,
)
from fullmatch.data.quality.fingerprints import (
    ProgressCallback,
    fingerprint_encoded,
    fingerprint_files,
    fingerprint_source,
    ignore_progress,
)
from fullmatch.data.quality.photo_search import PhotoOptions
from fullmatch.data.sources.folders import describe_skipped, find_pictures_outside
from fullmatch.data.sources.picture_files import PictureSurvey
from fullmatch.data.sources.picture_tables import survey_table
from fullmatch.data.sources.survey import survey_pictures
from fullmatch.data.sources.table_parts import choose_table_side
from fullmatch.data.stores.encoded import (
    EncodedStore,
    JoinedPictures,
    PictureSubset,
    open_all,
)
from fullmatch.data.stores.files import FileStore
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.data.stores.pictures import to_image
from fullmatch.errors import pluralize


def check_pictures(
    path: Path,
    report_progress: ProgressCallback = ignore_progress,
    photos: PhotoOptions | None = None,
) -> DataCheck:
    """Check a folder or CSV file; with `photos`, pictures are compared by features too."""
    survey = survey_pictures(path)
    items = list(survey.items())
    files = [file for file, _, _ in items]
    fingerprints = fingerprint_files(files, report_progress)
    home = path if path.is_dir() else path.parent

    def list_stores(side: int, channels: int) -> list[ImageStore]:
        return [FileStore(list(compress(files, fingerprints.readable)), (side, side), channels)]

    checked = CheckedPictures(
        name=path.resolve().name,
        pictures=[PictureEntry(_relative(file, home), part, label) for file, part, label in items],
        fingerprints=fingerprints,
        open_picture=lambda name: Image.open(home / name),
        list_stores=list_stores,
    )
    return checked.check(_find_survey_problems(path, survey), photos)


def check_source(
    source: Source,
    report_progress: ProgressCallback = ignore_progress,
    photos: PhotoOptions | None = None,
) -> DataCheck:
    """Check arrays, whose pictures have numbers instead of names."""
    labels = ["" if label < 0 else source.classes[label] for label in source.labels.tolist()]
    pictures = [
        PictureEntry(f"image {number}", "labeled" if label else "unlabeled", label)
        for number, label in enumerate(labels)
    ]
    if source.test_labels is not None:
        pictures += [
            PictureEntry(f"test image {number}", "test", source.classes[label])
            for number, label in enumerate(source.test_labels.tolist())
        ]
    stores = [source.images, *([source.test] if source.test is not None else [])]

    def open_picture(name: str) -> Image.Image:
        store, position = stores[name.startswith("test")], int(name.rpartition(" ")[2])
        return to_image(store.read(torch.tensor([position]))[0].cpu().numpy())

    checked = CheckedPictures(
        name=source.name,
        pictures=pictures,
        fingerprints=fingerprint_source(source, report_progress),
        open_picture=open_picture,
        list_stores=lambda side, channels: stores,
    )
    return checked.check([], photos)


def check_table(
    name: str,
    report_progress: ProgressCallback = ignore_progress,
    photos: PhotoOptions | None = None,
) -> DataCheck:
    """Check tables or shards, whose pictures are named by file and row."""
    table = survey_table(name)
    encoded = JoinedPictures([table.images, table.test])
    labels = [*table.labels.tolist(), *table.test_labels.tolist()]
    parts = [("labeled" if label >= 0 else "unlabeled") for label in table.labels.tolist()]
    parts += ["test"] * len(table.test)
    places = [place.describe() for place in open_all(encoded)]
    positions = {place: position for position, place in enumerate(places)}
    fingerprints = fingerprint_encoded(encoded, report_progress)
    readable = PictureSubset(encoded, np.flatnonzero(fingerprints.readable))
    checked = CheckedPictures(
        name=table.name,
        pictures=[
            PictureEntry(place, part, "" if label < 0 else table.classes[label])
            for place, part, label in zip(places, parts, labels, strict=True)
        ],
        fingerprints=fingerprints,
        open_picture=lambda place: Image.open(encoded.open(positions[place])),
        list_stores=lambda side, channels: [EncodedStore(readable, (side, side), channels)],
        choose_side=choose_table_side,
    )
    return checked.check([], photos)


def _find_survey_problems(path: Path, survey: PictureSurvey) -> list[DataFinding]:
    """Findings that need no look into the pictures."""
    home = path if path.is_dir() else path.parent
    findings = [
        DataFinding(
            FindingKind.EMPTY_CLASS,
            f"no picture in the class {name!r}",
            BLOCKED,
            blocks_training=True,
        )
        for name in survey.empty_classes
    ]
    if survey.conflicts:
        verb = "contradicts" if len(survey.conflicts) == 1 else "contradict"
        problem = f"{pluralize(survey.conflicts, 'line')} of {path.name} {verb} earlier ones"
        files = tuple(file for file, _ in survey.conflicts)
        findings.append(DataFinding(FindingKind.CONFLICTING_ROWS, problem, BLOCKED, files, True))
    if outside := find_pictures_outside(survey):
        problem = (
            f"{pluralize(outside, 'picture')} in neither a class folder nor the folder unlabeled"
        )
        files = tuple(_relative(file, home) for file in outside)
        findings.append(DataFinding(FindingKind.OUTSIDE, problem, "left out", files))
    if survey.skipped:
        problem = describe_skipped(survey.skipped)
        files = tuple(_relative(file, home) for file in survey.skipped)
        findings.append(DataFinding(FindingKind.NOT_PICTURES, problem, "left out", files))
    return findings


def _relative(file: str, home: Path) -> str:
    """The path relative to the pictures' folder, or as it is if the file lies elsewhere."""
    return str(Path(file).relative_to(home)) if Path(file).is_relative_to(home) else file
