"""Check a user's pictures: find all problems before training, without changing anything."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullmatch.data.dataset import Source, sort_classes
from fullmatch.data.quality.findings import (
    BLOCKED,
    DataFinding,
    FindingCollector,
    FindingKind,
    PictureEntry,
    find_label_problems,
    find_unreadable,
)
from fullmatch.data.quality.fingerprints import (
    Fingerprints,
    ProgressCallback,
    fingerprint_files,
    fingerprint_source,
    ignore_progress,
)
from fullmatch.data.sources.folders import describe_skipped, find_pictures_outside
from fullmatch.data.sources.picture_files import PictureSurvey, choose_picture_size
from fullmatch.data.sources.survey import survey_pictures
from fullmatch.errors import many


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
                }
                for finding in self.findings
            ],
            "works": self.can_train,
            "imbalance": round(self.imbalance, 2),
        }


def check_pictures(path: Path, report_progress: ProgressCallback = ignore_progress) -> DataCheck:
    """Check a folder or CSV file; every picture is decoded once."""
    survey = survey_pictures(path)
    items = list(survey.items())
    fingerprints = fingerprint_files([file for file, _, _ in items], report_progress)
    home = path if path.is_dir() else path.parent
    pictures = [PictureEntry(_relative(file, home), part, label) for file, part, label in items]
    return _check(path.resolve().name, pictures, fingerprints, _find_survey_problems(path, survey))


def check_source(source: Source, report_progress: ProgressCallback = ignore_progress) -> DataCheck:
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
    return _check(source.name, pictures, fingerprint_source(source, report_progress), [])


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
        problem = f"{many(survey.conflicts, 'line')} of {path.name} {verb} earlier ones"
        files = tuple(file for file, _ in survey.conflicts)
        findings.append(DataFinding(FindingKind.CONFLICTING_ROWS, problem, BLOCKED, files, True))
    if outside := find_pictures_outside(survey):
        problem = f"{many(outside, 'picture')} in neither a class folder nor the folder unlabeled"
        files = tuple(_relative(file, home) for file in outside)
        findings.append(DataFinding(FindingKind.OUTSIDE, problem, "left out", files))
    if survey.skipped:
        problem = describe_skipped(survey.skipped)
        files = tuple(_relative(file, home) for file in survey.skipped)
        findings.append(DataFinding(FindingKind.NOT_PICTURES, problem, "left out", files))
    return findings


def _check(
    name: str,
    pictures: list[PictureEntry],
    fingerprints: Fingerprints,
    survey_findings: Sequence[DataFinding],
) -> DataCheck:
    readable = [p for p, ok in zip(pictures, fingerprints.readable, strict=True) if ok]
    unreadable = [p for p, ok in zip(pictures, fingerprints.readable, strict=True) if not ok]
    classes = Counter(p.label for p in readable if p.part == "labeled")
    test = Counter(p.label for p in readable if p.part == "test")
    unlabeled = sum(p.part == "unlabeled" for p in readable)
    collector = FindingCollector(readable, fingerprints)
    collector.add_duplicates()
    collector.add_outliers()
    findings = [
        *survey_findings,
        *find_unreadable(pictures, unreadable),
        *find_label_problems(classes, test, unlabeled),
        *collector.findings,
    ]
    findings.sort(key=lambda finding: not finding.blocks_training)
    sizes = sorted(fingerprints.sizes, key=lambda size: size[0] * size[1])
    return DataCheck(
        name=name,
        classes={label: classes[label] for label in sort_classes(classes)},
        unlabeled=unlabeled,
        test={label: test[label] for label in sort_classes(test)},
        sizes={"smallest": sizes[0], "largest": sizes[-1]} if sizes else {},
        side=choose_picture_size([min(size) for size in sizes]),
        channels=1 if fingerprints.all_gray else 3,
        findings=tuple(findings),
    )


def _relative(file: str, home: Path) -> str:
    """The path relative to the pictures' folder, or as it is if the file lies elsewhere."""
    return str(Path(file).relative_to(home)) if Path(file).is_relative_to(home) else file
