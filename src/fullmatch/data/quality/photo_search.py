"""What features say about a user's photos: repeated ones, other kinds, labels that look wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fullmatch.data.dataset import sort_classes
from fullmatch.data.quality.findings import PictureEntry
from fullmatch.data.quality.fingerprints import ProgressCallback, ignore_progress
from fullmatch.data.quality.photo_duplicates import (
    OpenPicture,
    PhotoComparison,
    PhotoDuplicate,
    propose_pairs,
)
from fullmatch.data.quality.photo_features import Describe, PhotoFeatures
from fullmatch.data.quality.photo_outliers import find_photo_outliers
from fullmatch.data.quality.suspect_labels import find_suspect_labels


class WrongLabel(NamedTuple):
    """A picture whose label looks wrong, and the class that it looks like."""

    at: int
    looks_like: str
    probability: float


@dataclass(frozen=True)
class PhotoOptions:
    """How to compute features of photos, and who watches the comparisons after that."""

    describe: Describe
    report_comparison: ProgressCallback = ignore_progress


@dataclass(frozen=True)
class PhotoSearch:
    """Searches readable pictures by their features, one row per picture."""

    pictures: Sequence[PictureEntry]
    features: PhotoFeatures
    open_picture: OpenPicture
    report_comparison: ProgressCallback = ignore_progress

    def find_duplicates(self, positions: Sequence[int]) -> list[PhotoDuplicate]:
        """Photos that repeat others, among these pictures."""
        pairs = np.asarray(positions)[propose_pairs(self.features.embeddings[positions])]
        names = [picture.name for picture in self.pictures]
        comparison = PhotoComparison(names, self.open_picture)
        duplicates = []
        for first, second in pairs.tolist():
            duplicate = comparison.compare(first, second)
            if duplicate is not None:
                duplicates.append(duplicate)
            self.report_comparison(len(pairs))
        return duplicates

    def find_outliers(self) -> list[int]:
        """Unlabeled pictures of another kind than the labeled ones."""
        outliers = find_photo_outliers(self.features.descriptors, self.is_part("labeled"))
        return [at for at in outliers if self.pictures[at].part == "unlabeled"]

    def find_wrong_labels(self) -> list[WrongLabel]:
        """Labels that look wrong, first those of training.

        Labels of test pictures help to judge each other, but not those of training, so that
        correcting these does not fit them to the test set.
        """
        labeled, test = self.is_part("labeled"), self.is_part("test")
        return [
            *self.judge_labels(labeled, labeled),
            *(self.judge_labels(labeled | test, test) if test.any() else []),
        ]

    def judge_labels(self, known: NDArray[np.bool_], judged: NDArray[np.bool_]) -> list[WrongLabel]:
        classes = sort_classes(picture.label for picture in self.pictures if picture.label)
        codes = {label: code for code, label in enumerate(classes)}
        labels = np.array([codes.get(picture.label, -1) for picture in self.pictures])
        suspects = find_suspect_labels(self.features.embeddings, np.where(known, labels, -1))
        return [
            WrongLabel(at, classes[suggested], probability)
            for at, suggested, probability in suspects
            if judged[at]
        ]

    def is_part(self, part: str) -> NDArray[np.bool_]:
        return np.array([picture.part == part for picture in self.pictures], bool)
