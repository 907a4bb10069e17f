"""Pictures to check, wherever they come from: what is found in them, and what training would do."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress

from fullmatch.data.dataset import sort_classes
from fullmatch.data.quality.collector import FindingCollector
from fullmatch.data.quality.data_check import DataCheck
from fullmatch.data.quality.findings import (
    DataFinding,
    PictureEntry,
    find_label_problems,
    find_unreadable,
)
from fullmatch.data.quality.fingerprints import Fingerprints
from fullmatch.data.quality.photo_duplicates import OpenPicture
from fullmatch.data.quality.photo_search import PhotoOptions, PhotoSearch
from fullmatch.data.sources.picture_files import choose_picture_size
from fullmatch.data.stores.image_store import ImageStore


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

    def check(
        self, survey_findings: Sequence[DataFinding], photos: PhotoOptions | None
    ) -> DataCheck:
        """Look for all that the pictures themselves show, beside what their names have shown."""
        readable = self.select(readable=True)
        classes = Counter(p.label for p in readable if p.part == "labeled")
        test = Counter(p.label for p in readable if p.part == "test")
        unlabeled = sum(p.part == "unlabeled" for p in readable)
        search = self.search_photos(photos)
        collector = FindingCollector(readable, self.fingerprints, search)
        collector.add_duplicates()
        collector.add_outliers()
        collector.add_wrong_labels()
        findings = [
            *survey_findings,
            *find_unreadable(self.pictures, self.select(readable=False)),
            *find_label_problems(classes, test, unlabeled),
            *collector.findings,
        ]
        findings.sort(key=lambda finding: not finding.blocks_training)
        sizes = sorted(self.fingerprints.sizes, key=lambda size: size[0] * size[1])
        return DataCheck(
            name=self.name,
            classes={label: classes[label] for label in sort_classes(classes)},
            unlabeled=unlabeled,
            test={label: test[label] for label in sort_classes(test)},
            sizes={"smallest": sizes[0], "largest": sizes[-1]} if sizes else {},
            side=self.side,
            channels=self.channels,
            findings=tuple(findings),
            network="" if search is None else search.features.weights,
            open_picture=self.open_picture,
        )
