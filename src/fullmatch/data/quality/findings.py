"""Findings: problems in a user's pictures, and what training does about each of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from fullmatch.data.dataset import sort_classes
from fullmatch.data.quality.cleaning import MAX_IMBALANCE
from fullmatch.data.quality.duplicates import find_exact_duplicates, find_near_duplicates
from fullmatch.data.quality.fingerprints import Fingerprints
from fullmatch.data.quality.outliers import find_outliers
from fullmatch.data.sources.picture_files import MAX_UNREADABLE, WARN_UNREADABLE
from fullmatch.errors import many

FEW_LABELS = 4  # per class; accuracy is unreliable below this
PARTS = ("labeled", "unlabeled", "test")
BLOCKED = "training will not start until this is fixed"


class FindingKind(StrEnum):
    """What a finding is about. The values are part of the format of check.json."""

    CONFLICTING_LABELS = "two labels"
    CONFLICTING_ROWS = "contradiction"
    EMPTY_CLASS = "empty class"
    EXACT_DUPLICATES = "copies"
    FEW_LABELS = "few labels"
    IMBALANCE = "imbalance"
    LOST_CLASS = "lost class"
    NEAR_DUPLICATES = "near copies"
    NEAR_TEST_DUPLICATES = "near test copies"
    NOT_PICTURES = "no pictures"
    NO_UNLABELED = "unlabeled"
    OUTLIERS = "strangers"
    OUTSIDE = "outside"
    TEST_DUPLICATES = "test copies"
    TOO_FEW_CLASSES = "classes"
    UNKNOWN_TEST_CLASS = "stray class"
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class PictureEntry:
    """A picture with its part of the data set and its label, '' if it has none."""

    name: str
    part: str
    label: str


@dataclass(frozen=True)
class DataFinding:
    """A problem in the data: what it is, what will happen, and which files are affected."""

    kind: FindingKind
    problem: str
    consequence: str
    files: tuple[str, ...] = ()
    blocks_training: bool = False

    def sentence(self) -> str:
        return f"{self.problem}: {self.consequence}"


@dataclass
class FindingCollector:
    """Collects findings about the readable pictures."""

    pictures: list[PictureEntry]
    fingerprints: Fingerprints
    findings: list[DataFinding] = field(default_factory=list)

    def add(
        self, kind: FindingKind, problem: str, consequence: str, positions: Sequence[int]
    ) -> None:
        files = tuple(self.pictures[position].name for position in positions)
        self.findings.append(DataFinding(kind, problem, consequence, files))

    def add_duplicates(self) -> None:
        groups = find_exact_duplicates(self.fingerprints.digests)
        unusable = self._add_conflicting_labels(groups) | self._add_test_duplicates(groups)
        self._add_lost_classes(unusable)
        duplicates = [position for group in groups for position in group[1:]]
        if duplicates:
            self.add(
                FindingKind.EXACT_DUPLICATES,
                f"{many(duplicates, 'exact duplicate')} of other pictures",
                "kept, and held out together when accuracy is estimated",
                duplicates,
            )
        self._add_near_duplicates(set(duplicates))

    def add_outliers(self) -> None:
        unlabeled = self._positions("unlabeled")
        features = self.fingerprints.features
        is_outlier = find_outliers(features[self._positions("labeled")], features[unlabeled])
        outliers = [at for at, odd in zip(unlabeled, is_outlier, strict=True) if odd]
        if not outliers:
            return
        warning = _warning(len(outliers) / len(unlabeled))
        self.add(
            FindingKind.OUTLIERS,
            f"{warning}{many(outliers, 'unlabeled picture')} unlike the labeled ones in color or "
            "edges",
            "kept; remove those that belong to no class",
            outliers,
        )

    def _add_conflicting_labels(self, groups: list[list[int]]) -> set[int]:
        conflicting: list[int] = []
        for group in groups:
            labeled = [at for at in group if self.pictures[at].part == "labeled"]
            if len({self.pictures[at].label for at in labeled}) > 1:
                conflicting += labeled
        if conflicting:
            self.add(
                FindingKind.CONFLICTING_LABELS,
                f"the same picture with different labels in {many(conflicting, 'file')}",
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
                f"{many(leaked, 'training picture is', 'training pictures are')} also in the test "
                "set",
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
        if not groups:
            return
        groups = [[positions[at] for at in group] for group in groups]
        members = [at for group in groups for at in group]
        self.add(
            FindingKind.NEAR_DUPLICATES,
            f"{many(members, 'near duplicate')} in {many(groups, 'group')}",
            "kept; check whether they are intended",
            members,
        )
        in_test = []
        for group in groups:
            test = [at for at in group if self.pictures[at].part == "test"]
            in_test += test if len(test) < len(group) else []
        if in_test:
            self.add(
                FindingKind.NEAR_TEST_DUPLICATES,
                f"{many(in_test, 'test picture')} nearly identical to training pictures",
                "kept, but they make the test too easy; remove them if they are duplicates",
                in_test,
            )

    def _positions(self, part: str) -> list[int]:
        return [at for at, picture in enumerate(self.pictures) if picture.part == part]


def find_unreadable(
    pictures: Sequence[PictureEntry], unreadable: Sequence[PictureEntry]
) -> list[DataFinding]:
    findings = []
    for part in PARTS:
        files = tuple(picture.name for picture in unreadable if picture.part == part)
        if not files:
            continue
        share = len(files) / sum(picture.part == part for picture in pictures)
        blocks = part == "labeled" or share > MAX_UNREADABLE
        problem = f"{'' if blocks else _warning(share)}{many(files, f'{part} picture')}"
        findings.append(
            DataFinding(
                FindingKind.UNREADABLE,
                f"{problem} cannot be read",
                BLOCKED if blocks else "left out",
                files,
                blocks,
            )
        )
    return findings


def find_label_problems(
    classes: Counter[str], test: Counter[str], unlabeled: int
) -> list[DataFinding]:
    """Findings about the number of pictures per class and part."""
    findings = []

    def add(kind: FindingKind, problem: str, consequence: str | None = None) -> None:
        blocks = consequence is None
        findings.append(DataFinding(kind, problem, consequence or BLOCKED, (), blocks))

    if len(classes) < 2:
        problem = f"{many(classes, 'class', 'classes')} with labels, at least 2 are needed"
        add(FindingKind.TOO_FEW_CLASSES, problem)
    if unknown := sort_classes(set(test) - set(classes)):
        problem = f"test pictures of {unknown[0]!r}, a class without labeled pictures"
        add(FindingKind.UNKNOWN_TEST_CLASS, problem)
    if few := [label for label in sort_classes(classes) if classes[label] < FEW_LABELS]:
        count = many(few, "class", "classes")
        problem = f"{count} with fewer than {FEW_LABELS} labels ({_first_three(few)})"
        add(FindingKind.FEW_LABELS, problem, "label more of these first")
    if classes and max(classes.values()) > MAX_IMBALANCE * min(classes.values()):
        times = max(classes.values()) / min(classes.values())
        problem = f"the largest class has {times:.1f} times as many labels as the smallest"
        add(FindingKind.IMBALANCE, problem, "pictures of small classes are shown more often")
    if not unlabeled:
        add(
            FindingKind.NO_UNLABELED, "no unlabeled pictures", "training uses only the labeled ones"
        )
    return findings


def _warning(share: float) -> str:
    return f"WARNING, {share:.0%} of them: " if share > WARN_UNREADABLE else ""


def _first_three(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
