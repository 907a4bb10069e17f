"""Findings about readable pictures: duplicates, outliers, labels that look wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fullmatch.data.dataset import sort_classes
from fullmatch.data.quality.duplicates import (
    connected_groups,
    find_exact_duplicates,
    find_near_duplicates,
)
from fullmatch.data.quality.findings import (
    BLOCKED,
    DataFinding,
    FindingKind,
    PictureEntry,
    add_share,
)
from fullmatch.data.quality.fingerprints import Fingerprints
from fullmatch.data.quality.outliers import MANY as MANY_OUTLIERS
from fullmatch.data.quality.outliers import find_outliers
from fullmatch.data.quality.photo_duplicates import PhotoDuplicate
from fullmatch.data.quality.photo_search import PhotoSearch
from fullmatch.errors import pluralize


@dataclass
class FindingCollector:
    """Collects findings about the readable pictures."""

    pictures: list[PictureEntry]
    fingerprints: Fingerprints
    photos: PhotoSearch | None = None  # None where pictures are compared by their pixels only
    findings: list[DataFinding] = field(default_factory=list)

    def add(
        self,
        kind: FindingKind,
        problem: str,
        consequence: str,
        positions: Sequence[int],
        notes: Sequence[str] = (),
        groups: Sequence[Sequence[int]] = (),
    ) -> None:
        finding = DataFinding(
            kind,
            problem,
            consequence,
            self._names(positions),
            notes=tuple(notes),
            groups=tuple(map(self._names, groups)),
        )
        self.findings.append(finding)

    def add_duplicates(self) -> None:
        groups = find_exact_duplicates(self.fingerprints.digests)
        unusable = self._add_conflicting_labels(groups) | self._add_test_duplicates(groups)
        self._add_lost_classes(unusable)
        duplicates = [position for group in groups for position in group[1:]]
        if duplicates:
            self.add(
                FindingKind.EXACT_DUPLICATES,
                f"{pluralize(duplicates, 'exact duplicate')} of other pictures",
                "kept, and held out together when accuracy is estimated",
                duplicates,
                [f"of {self.pictures[group[0]].name}" for group in groups for _ in group[1:]],
            )
        self._add_near_duplicates(set(duplicates))

    def add_outliers(self) -> None:
        unlabeled = self._positions("unlabeled")
        outliers = self._find_outliers() if self.photos is None else self.photos.find_outliers()
        if not outliers:
            return
        share = len(outliers) / len(unlabeled)
        advice = ", or train with --algorithm iomatch" if share >= MANY_OUTLIERS else ""
        aspect = " in color or edges" if self.photos is None else ""
        self.add(
            FindingKind.OUTLIERS,
            f"{add_share(pluralize(outliers, 'unlabeled picture'), share)} unlike the labeled "
            f"ones{aspect}",
            f"kept; remove those that belong to no class{advice}",
            outliers,
        )

    def add_wrong_labels(self) -> None:
        suspects = [] if self.photos is None else self.photos.find_wrong_labels()
        if not suspects:
            return
        verb = "label looks" if len(suspects) == 1 else "labels look"
        self.add(
            FindingKind.SUSPECT_LABELS,
            f"{len(suspects)} {verb} wrong",
            "kept; look at these pictures, and correct their labels where needed",
            [suspect.at for suspect in suspects],
            [
                f"labeled {self.pictures[at].label}, looks like {looks_like} ({probability:.0%})"
                for at, looks_like, probability in suspects
            ],
        )

    def _find_outliers(self) -> list[int]:
        """By color and edges."""
        unlabeled = self._positions("unlabeled")
        features = self.fingerprints.features
        is_outlier = find_outliers(features[self._positions("labeled")], features[unlabeled])
        return [at for at, odd in zip(unlabeled, is_outlier, strict=True) if odd]

    def _add_conflicting_labels(self, groups: list[list[int]]) -> set[int]:
        conflicting: list[int] = []
        for group in groups:
            labeled = [at for at in group if self.pictures[at].part == "labeled"]
            if len({self.pictures[at].label for at in labeled}) > 1:
                conflicting += labeled
        if conflicting:
            self.add(
                FindingKind.CONFLICTING_LABELS,
                f"the same picture with different labels in {pluralize(conflicting, 'file')}",
                "these labels are not used",
                conflicting,
            )
        return set(conflicting)

    def _add_test_duplicates(self, groups: list[list[int]]) -> set[int]:
        leaked: list[int] = []
        for group in groups:
            training = [at for at in group if self.pictures[at].part != "test"]
            if len(training) < len(group):
                leaked += training
        if leaked:
            self.add(
                FindingKind.TEST_DUPLICATES,
                f"{pluralize(leaked, 'training picture is', 'training pictures are')} also in the "
                "test set",
                "left out of training",
                leaked,
            )
        return set(leaked)

    def _add_lost_classes(self, unusable: set[int]) -> None:
        labeled = self._positions("labeled")
        remaining = {self.pictures[at].label for at in labeled if at not in unusable}
        for name in sort_classes({self.pictures[at].label for at in labeled} - remaining):
            problem = f"this leaves no label of the class {name!r}"
            self.findings.append(
                DataFinding(FindingKind.LOST_CLASS, problem, BLOCKED, blocks_training=True)
            )

    def _add_near_duplicates(self, exact_duplicates: set[int]) -> None:
        positions = [at for at in range(len(self.pictures)) if at not in exact_duplicates]
        groups = find_near_duplicates(
            self.fingerprints.hashes[positions],
            self.fingerprints.thumbnails[positions],
            self.fingerprints.features[positions, :3],
        )
        groups = [[positions[at] for at in group] for group in groups]
        repeated = [] if self.photos is None else self.photos.find_duplicates(positions)
        groups = merge_groups(groups, repeated)
        if not groups:
            return
        notes = self._describe_duplicates(groups, repeated)
        members = [at for group in groups for at in group]
        self.add(
            FindingKind.NEAR_DUPLICATES,
            f"{pluralize(members, 'near duplicate')} in {pluralize(groups, 'group')}",
            "kept; check whether they are intended",
            members,
            notes=[notes[at] for at in members],
            groups=groups,
        )
        self._add_near_conflicts(groups)
        self._add_near_test_duplicates(groups)

    def _describe_duplicates(
        self, groups: list[list[int]], repeated: Sequence[PhotoDuplicate]
    ) -> dict[int, str]:
        """What each picture of the groups is; nothing for the first of a group."""
        notes = {at: f"like {self.pictures[group[0]].name}" for group in groups for at in group}
        notes |= {group[0]: "" for group in groups}
        for at, original, likeness in repeated:
            notes[at] = f"{likeness} of {self.pictures[original].name}"
        return notes

    def _add_near_conflicts(self, groups: list[list[int]]) -> None:
        conflicts = []
        for group in groups:
            known = [at for at in group if self.pictures[at].label]
            if len({self.pictures[at].label for at in known}) > 1:
                conflicts.append(known)
        if conflicts:
            members = [at for group in conflicts for at in group]
            self.add(
                FindingKind.NEAR_CONFLICTS,
                f"near duplicates with different labels in {pluralize(members, 'file')}",
                "kept; correct the labels that are wrong",
                members,
                [f"labeled {self.pictures[at].label}" for at in members],
                conflicts,
            )

    def _add_near_test_duplicates(self, groups: list[list[int]]) -> None:
        in_test = []
        for group in groups:
            test = [at for at in group if self.pictures[at].part == "test"]
            in_test += test if len(test) < len(group) else []
        if in_test:
            self.add(
                FindingKind.NEAR_TEST_DUPLICATES,
                f"{pluralize(in_test, 'test picture')} nearly identical to training pictures",
                "kept, but they make the test too easy; remove them if they are duplicates",
                in_test,
            )

    def _names(self, positions: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.pictures[position].name for position in positions)

    def _positions(self, part: str) -> list[int]:
        return [at for at, picture in enumerate(self.pictures) if picture.part == part]


def merge_groups(
    groups: Sequence[Sequence[int]], repeated: Sequence[PhotoDuplicate]
) -> list[list[int]]:
    """Groups of positions that are connected by a group or by a photo that repeats another."""
    pairs = [(group[0], at) for group in groups for at in group[1:]]
    pairs += [(duplicate.original, duplicate.at) for duplicate in repeated]
    return connected_groups(np.asarray(pairs, np.int64).reshape(-1, 2))
