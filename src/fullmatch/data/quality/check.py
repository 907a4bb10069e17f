"""What is wrong with these pictures, in words, and what training will do about it."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fullmatch.data.dataset import Source, class_order
from fullmatch.data.quality.findings import (
    REFUSES,
    Picture,
    Remark,
    Remarks,
    label_remarks,
    unreadable_remarks,
)
from fullmatch.data.quality.fingerprints import Looks, Told, quietly, read_files, read_source
from fullmatch.data.sources.folders import no_pictures, pictures_outside
from fullmatch.data.sources.listing import SIDES
from fullmatch.data.sources.survey import survey
from fullmatch.errors import many


@dataclass(frozen=True)
class Check:
    """All that was found; `remarks` are in the order they should be read."""

    name: str
    classes: dict[str, int]  # labeled pictures of each class
    unlabeled: int
    test: dict[str, int]
    sizes: dict[str, tuple[int, int]]  # width and height of the smallest and the largest picture
    side: int  # that the pictures suggest
    channels: int
    remarks: tuple[Remark, ...] = ()

    @property
    def works(self) -> bool:
        """Whether training would start."""
        return not any(remark.blocks for remark in self.remarks)

    @property
    def imbalance(self) -> float:
        counts = self.classes.values()
        return max(counts) / min(counts) if counts and min(counts) else 1.0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"works": self.works, "imbalance": round(self.imbalance, 2)}


def examine(path: Path, told: Told = quietly) -> Check:
    """Read every picture of a folder or CSV once; `told` hears after each how many there are."""
    found = survey(path)
    items = list(found.items())
    looks = read_files([file for file, _, _ in items], told)
    home = path if path.is_dir() else path.parent
    pictures = [Picture(_short(file, home), part, label) for file, part, label in items]
    remarks = [
        Remark("empty class", f"no picture in the class {name!r}", REFUSES, blocks=True)
        for name in found.empty
    ]
    if found.disputed:
        verb = "contradicts" if len(found.disputed) == 1 else "contradict"
        words = f"{many(found.disputed, 'line')} of {path.name} {verb} earlier ones"
        files = tuple(file for file, _ in found.disputed)
        remarks.append(Remark("contradiction", words, REFUSES, files, True))
    if outside := pictures_outside(found):
        words = f"{many(outside, 'picture')} in no folder of a class, nor in unlabeled"
        files = tuple(_short(file, home) for file in outside)
        remarks.append(Remark("outside", words, "left out", files))
    if found.left_out:
        files = tuple(_short(file, home) for file in found.left_out)
        remarks.append(Remark("no pictures", no_pictures(found.left_out), "left out", files))
    return _checked(path.resolve().name, pictures, looks, remarks)


def examine_source(source: Source, told: Told = quietly) -> Check:
    """The same for arrays and benchmarks, whose pictures have numbers instead of names."""
    words = ["" if label < 0 else source.classes[label] for label in source.labels.tolist()]
    pictures = [
        Picture(f"image {at}", "labeled" if word else "unlabeled", word)
        for at, word in enumerate(words)
    ]
    if source.test_labels is not None:
        tests = enumerate(source.test_labels.tolist())
        pictures += [Picture(f"test image {at}", "test", source.classes[k]) for at, k in tests]
    return _checked(source.name, pictures, read_source(source, told), [])


def _checked(name: str, pictures: list[Picture], looks: Looks, before: Sequence[Remark]) -> Check:
    readable = [p for p, ok in zip(pictures, looks.readable, strict=True) if ok]
    broken = [p for p, ok in zip(pictures, looks.readable, strict=True) if not ok]
    classes = Counter(p.label for p in readable if p.part == "labeled")
    test = Counter(p.label for p in readable if p.part == "test")
    unlabeled = sum(p.part == "unlabeled" for p in readable)
    remarks = [
        *before,
        *unreadable_remarks(pictures, broken),
        *label_remarks(classes, test, unlabeled),
    ]
    rest = Remarks(readable, looks)
    rest.copies()
    rest.strangers()
    remarks += rest.found
    remarks.sort(key=lambda remark: not remark.blocks)
    sizes = sorted(looks.sizes, key=lambda size: size[0] * size[1])
    median = statistics.median(min(size) for size in sizes) if sizes else SIDES[0]
    return Check(
        name=name,
        classes={label: classes[label] for label in class_order(classes)},
        unlabeled=unlabeled,
        test={label: test[label] for label in class_order(test)},
        sizes={"smallest": sizes[0], "largest": sizes[-1]} if sizes else {},
        side=max((side for side in SIDES if side <= median), default=SIDES[0]),
        channels=1 if looks.grey else 3,
        remarks=tuple(remarks),
    )


def _short(file: str, home: Path) -> str:
    """A file's name as seen from the pictures' folder, or all of it where it lies elsewhere."""
    return str(Path(file).relative_to(home)) if Path(file).is_relative_to(home) else file
