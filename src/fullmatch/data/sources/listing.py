"""A list of the user's picture files: each tried once, then brought to one size."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress

import torch
from torch import Tensor

from fullmatch.data.dataset import Source, class_order, measured_appearance
from fullmatch.data.stores import pictures
from fullmatch.data.stores.files import FileStore
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError, many

SIDES = (32, 64, 96, 128, 160, 192, 224)
RESIDENT_BYTES = 4 * 2**30  # decoded pictures are kept in memory up to here, else read as needed
LOUD, TOO_MANY = 0.05, 0.5  # shares of unreadable pictures that are warned of, and refused


@dataclass
class Listing:
    """Picture files by what is known about them, and what to tell the user."""

    labeled: list[tuple[str, str]]
    unlabeled: list[str]
    test: list[tuple[str, str]]
    notes: list[str] = field(default_factory=list)

    def source(self, name: str, size: int | None) -> Source:
        """Unreadable labeled pictures are an error, others are left out and reported."""
        classes = self._classes(name)
        paths = [path for path, _ in self.labeled] + self.unlabeled
        side, channels = _form(paths)
        side = size or side
        if not self.unlabeled:
            self.notes.append("no unlabeled pictures: only the labeled ones are learned from")

        images, readable = _store(paths, side, channels)
        known = len(self.labeled)
        if bad := [path for path, ok in zip(paths, readable[:known], strict=False) if not ok]:
            raise UserError(
                f"{many(bad, 'labeled picture')} cannot be read: {_some(bad)}; "
                "mend or remove what is damaged"
            )
        self._report("unlabeled", self.unlabeled, readable[known:])
        kept = sum(readable) - known
        labels = torch.cat([_codes(self.labeled, classes), torch.full((kept,), -1)])

        test, test_labels = None, None
        if self.test:
            test, readable = _store([path for path, _ in self.test], side, channels)
            self._report("test", [path for path, _ in self.test], readable)
            test_labels = _codes(list(compress(self.test, readable)), classes)
        return Source(
            name=name,
            images=images,
            labels=labels,
            test=test,
            test_labels=test_labels,
            classes=classes,
            appearance=measured_appearance(images),
            notes=tuple(self.notes),
        )

    def _classes(self, name: str) -> tuple[str, ...]:
        classes = class_order(label for _, label in self.labeled)
        if len(classes) < 2:
            found = f"only the class {classes[0]!r}" if classes else "no labeled pictures"
            raise UserError(f"{name} has {found}; label pictures of at least 2 classes")
        if strays := class_order({label for _, label in self.test} - set(classes)):
            raise UserError(
                f"the test pictures of {name} have a class {strays[0]!r} that no labeled picture "
                "has; label some of it, or take it out of the test"
            )
        return classes

    def _report(self, kind: str, paths: list[str], readable: list[bool]) -> None:
        bad = [path for path, ok in zip(paths, readable, strict=True) if not ok]
        if not bad:
            return
        share = len(bad) / len(paths)
        if share > TOO_MANY:
            raise UserError(
                f"{len(bad)} of {len(paths)} {kind} pictures cannot be read: {_some(bad)}; "
                "check what these files are"
            )
        loud = f"WARNING, {share:.0%} of them: " if share > LOUD else ""
        left_out = many(bad, f"unreadable {kind} picture")
        self.notes.append(f"{loud}{left_out} left out: {_some(bad)}")


@dataclass
class Survey(Listing):
    """A listing that keeps what training would refuse or leave out, so that it can be told."""

    empty: dict[str, str] = field(default_factory=dict)  # classes without a picture: their folders
    disputed: list[tuple[str, str]] = field(default_factory=list)  # files told of in two ways: how
    left_out: dict[str, str] = field(default_factory=dict)  # files that are no pictures: their kind
    strange: list[str] = field(default_factory=list)  # folders that are no part of the data
    loose: list[str] = field(default_factory=list)  # pictures beside folders of classes

    def items(self) -> Iterator[tuple[str, str, str]]:
        """Path, part and label ('' where there is none) of every picture."""
        yield from ((path, "labeled", label) for path, label in self.labeled)
        yield from ((path, "unlabeled", "") for path in self.unlabeled)
        yield from ((path, "test", label) for path, label in self.test)


def _form(paths: Sequence[str]) -> tuple[int, int]:
    """The side that suits the median picture, and 1 channel if all are grey, else 3."""
    looks = pictures.map_in_threads(
        lambda path: pictures.try_read(pictures.read_header, path), paths
    )
    seen = [look for look in looks if look is not None]
    if not seen:
        return SIDES[0], 3
    median = statistics.median(side for side, _ in seen)
    side = max((side for side in SIDES if side <= median), default=SIDES[0])
    return side, 1 if all(grey for _, grey in seen) else 3


def _store(paths: Sequence[str], side: int, channels: int) -> tuple[ImageStore, list[bool]]:
    files = FileStore(paths, (side, side), channels)
    if len(paths) * channels * side**2 > RESIDENT_BYTES:
        readable = files.decode_all()
        return FileStore(list(compress(paths, readable)), (side, side), channels), readable
    pixels = torch.empty((len(paths), channels, side, side), dtype=torch.uint8)
    readable = files.decode_all(pixels)
    kept = pixels if all(readable) else pixels[torch.tensor(readable)]
    return TensorStore(kept, list(compress(paths, readable))), readable


def _codes(pictures: Sequence[tuple[str, str]], classes: tuple[str, ...]) -> Tensor:
    codes = {label: code for code, label in enumerate(classes)}
    return torch.tensor([codes[label] for _, label in pictures], dtype=torch.int64)


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more
