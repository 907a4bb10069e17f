"""Check a user's pictures: find all problems before training, without changing anything."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from fullmatch.data.dataset import Source, sort_classes
from fullmatch.data.quality.collector import FindingCollector
from fullmatch.data.quality.findings import (
    BLOCKED,
    DataFinding,
    FindingKind,
    PictureEntry,
    find_label_problems,
    find_unreadable,
)
from fullmatch.data.quality.fingerprints import (
    Fingerprints,
    ProgressCallback,
    fingerprint_encoded,
    fingerprint_files,
    fingerprint_source,
    ignore_progress,
)
from fullmatch.data.quality.photo_duplicates import OpenPicture
from fullmatch.data.quality.photo_search import PhotoOptions, PhotoSearch
from fullmatch.data.sources.folders import describe_skipped, find_pictures_outside
from fullmatch.data.sources.picture_files import PictureSurvey, choose_picture_size
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


@dataclass(frozen=True)
class DataCheck:
    """The result of a check; `findings` are in the order to read them in."""

    name: str
    classes: dict[str, int]  # labeled pictures per class
    unlabeled: int
    test: dict[str, int]  # test pictures per class
    sizes: dict[str, tuple[int, int]]  # width and height of the smallest and the largest picture
    side: int  # the picture size that training would choose
    channels: int
    findings: tuple[DataFinding, ...] = ()
    network: str = ""  # whose features the pictures were compared by; '' for their pixels only
    open_picture: OpenPicture = field(default=Image.open, compare=False, repr=False)  # by its name

    @property
    def can_train(self) -> bool:
        """Whether training would start."""
        return not any(finding.blocks_training for finding in self.findings)

    @property
    def imbalance(self) -> float:
        counts = self.classes.values()
        return max(counts) / min(counts) if counts and min(counts) else 1.0

    def to_json(self) -> dict[str, Any]:
        """The content of check.json, whose keys stay the same across versions."""
        return {
            "name": self.name,
            "classes": self.classes,
            "unlabeled": self.unlabeled,
            "test": self.test,
            "sizes": self.sizes,
            "side": self.side,
            "channels": self.channels,
            "remarks": [
                {
                    "kind": finding.kind,
                    "words": finding.problem,
                    "then": finding.consequence,
                    "files": finding.files,
                    "blocks": finding.blocks_training,
                    "notes": finding.notes,
                    "groups": finding.groups,
                }
                for finding in self.findings
            ],
            "works": self.can_train,
            "imbalance": round(self.imbalance, 2),
            "features": self.network or None,
        }


def choose_side(sizes: Sequence[tuple[int, int]]) -> int:
    """The picture size that training would choose for files of these widths and heights."""
    return choose_picture_size([min(size) for size in sizes])


@dataclass(frozen=True)
class CheckedPictures:
    """Pictures with their fingerprints, and how to read them again."""

    name: str
    pictures: list[PictureEntry]
    fingerprints: Fingerprints
    open_picture: OpenPicture  # by its name
    list_stores: Callable[[int, int], list[ImageStore]]  # of readable ones, given side and channels
    choose_side: Callable[[Sequence[tuple[int, int]]], int] = choose_side

    @property
    def side(self) -> int:
        return self.choose_side(self.fingerprints.sizes)

    @property
    def channels(self) -> int:
        return 1 if self.fingerprints.all_gray else 3

    def select(self, *, readable: bool) -> list[PictureEntry]:
        return list(
            compress(self.pictures, [each is readable for each in self.fingerprints.readable])
        )

    def search_photos(self, options: PhotoOptions | None) -> PhotoSearch | None:
        """What to compare the pictures by features with; None if they are not photos."""
        readable = self.select(readable=True)
        if options is None or not readable:
            return None
        features = options.describe(self.list_stores(self.side, self.channels))
        if features is None:
            return None
        return PhotoSearch(readable, features, self.open_picture, options.report_comparison)


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
    return _check(checked, _find_survey_problems(path, survey), photos)


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
    return _check(checked, [], photos)


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
    return _check(checked, [], photos)


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


def _check(
    checked: CheckedPictures, survey_findings: Sequence[DataFinding], photos: PhotoOptions | None
) -> DataCheck:
    readable = checked.select(readable=True)
    classes = Counter(p.label for p in readable if p.part == "labeled")
    test = Counter(p.label for p in readable if p.part == "test")
    unlabeled = sum(p.part == "unlabeled" for p in readable)
    search = checked.search_photos(photos)
    collector = FindingCollector(readable, checked.fingerprints, search)
    collector.add_duplicates()
    collector.add_outliers()
    collector.add_wrong_labels()
    findings = [
        *survey_findings,
        *find_unreadable(checked.pictures, checked.select(readable=False)),
        *find_label_problems(classes, test, unlabeled),
        *collector.findings,
    ]
    findings.sort(key=lambda finding: not finding.blocks_training)
    sizes = sorted(checked.fingerprints.sizes, key=lambda size: size[0] * size[1])
    return DataCheck(
        name=checked.name,
        classes={label: classes[label] for label in sort_classes(classes)},
        unlabeled=unlabeled,
        test={label: test[label] for label in sort_classes(test)},
        sizes={"smallest": sizes[0], "largest": sizes[-1]} if sizes else {},
        side=checked.side,
        channels=checked.channels,
        findings=tuple(findings),
        network="" if search is None else search.features.weights,
        open_picture=checked.open_picture,
    )


def _relative(file: str, home: Path) -> str:
    """The path relative to the pictures' folder, or as it is if the file lies elsewhere."""
    return str(Path(file).relative_to(home)) if Path(file).is_relative_to(home) else file
