"""Findings: problems in a user's pictures, and what training does about each of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fullmatch.data.dataset import sort_classes
from fullmatch.data.quality.cleaning import MAX_IMBALANCE
from fullmatch.data.sources.picture_files import MAX_UNREADABLE, WARN_UNREADABLE
from fullmatch.errors import pluralize

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
    NEAR_CONFLICTS = "two labels of near copies"
    NEAR_DUPLICATES = "near copies"
    NEAR_TEST_DUPLICATES = "near test copies"
    NOT_PICTURES = "no pictures"
    NO_UNLABELED = "unlabeled"
    OUTLIERS = "strangers"
    OUTSIDE = "outside"
    SUSPECT_LABELS = "suspect labels"
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
    notes: tuple[str, ...] = ()  # about each of the files, or none
    groups: tuple[tuple[str, ...], ...] = ()  # the files again, where some belong together

    def sentence(self) -> str:
        return f"{self.problem}: {self.consequence}"


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
        count = pluralize(files, f"{part} picture")
        problem = count if blocks else add_share(count, share)
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
        problem = f"{pluralize(classes, 'class', 'classes')} with labels, at least 2 are needed"
        add(FindingKind.TOO_FEW_CLASSES, problem)
    if unknown := sort_classes(set(test) - set(classes)):
        problem = f"test pictures of {unknown[0]!r}, a class without labeled pictures"
        add(FindingKind.UNKNOWN_TEST_CLASS, problem)
    if few := [label for label in sort_classes(classes) if classes[label] < FEW_LABELS]:
        count = pluralize(few, "class", "classes")
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


def add_share(count: str, share: float) -> str:
    """A number of pictures, as a warning where it is an unusual share of them."""
    return f"WARNING: {count} ({share:.0%})" if share > WARN_UNREADABLE else count


def _first_three(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
