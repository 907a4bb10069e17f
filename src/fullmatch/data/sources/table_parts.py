"""Encoded pictures with labels, as tables and shards hold them, and how they become a source."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from fullmatch.data.dataset import Source, measure_appearance, sort_classes
from fullmatch.data.sources.picture_files import (
    PICTURE_SIZES,
    choose_picture_size,
    decode_pictures,
    describe_unreadable,
    read_headers,
    require_classes,
    require_readable,
)
from fullmatch.data.stores.encoded import (
    EncodedPictures,
    EncodedStore,
    JoinedPictures,
    PictureSubset,
    Positions,
)
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError, pluralize

Codes = NDArray[np.int64]

MIN_SIDE = 8  # of squares that are not resized
TRAIN, UNLABELED, TEST, VALIDATION = "train", "unlabeled", "test", "validation"
SPLITS = {
    **dict.fromkeys(("", "train", "training", "labeled", "labelled"), TRAIN),
    **dict.fromkeys(("unlabeled", "unlabelled"), UNLABELED),
    **dict.fromkeys(("test", "testing"), TEST),
    **dict.fromkeys(("validation", "valid", "val", "dev"), VALIDATION),
}


@dataclass(frozen=True)
class TablePart:
    """The pictures of one split in one file, with a label for each."""

    split: str  # as it is called there
    pictures: EncodedPictures
    labels: Codes  # positions in `names`; -1: unlabeled
    names: tuple[str, ...]
    ordered: bool = False  # whether the file itself gives its classes this order

    def select(self, positions: Positions, split: str) -> "TablePart":
        pictures = PictureSubset(self.pictures, positions)
        return TablePart(split, pictures, self.labels[positions], self.names, self.ordered)


@dataclass
class PictureTable:
    """What training and measuring use of some tables or shards."""

    name: str
    images: EncodedPictures
    labels: Codes  # positions in `classes`; -1: unlabeled
    test: EncodedPictures
    test_labels: Codes
    classes: tuple[str, ...]
    notes: list[str] = field(default_factory=list)

    def choose_form(self) -> tuple[int, int]:
        """Picture size and channels, by the headers of the training pictures."""
        headers = read_headers(self.images)
        side = choose_table_side([header.size for header in headers])
        return side, 1 if all(header.is_gray for header in headers) else 3

    def to_source(self, size: int | None, *, max_bytes: int | None = None) -> Source:
        """Decode the pictures into a source; those that do not fit into memory stay encoded.

        Unreadable labeled pictures are an error; other unreadable pictures are left out and noted.
        """
        if not (self.labels < 0).any():
            self.notes.append("no unlabeled pictures: training uses only the labeled ones")
        side, channels = self.choose_form()
        shape = (channels, size or side, size or side)
        images, readable = _decode(self.images, shape, max_bytes)
        self._note_unreadable(readable)
        test, test_labels = None, None
        if len(self.test):
            test, test_readable = _decode(self.test, shape, max_bytes)
            bad = _describe_all(self.test, ~test_readable)
            self.notes += describe_unreadable("test", bad, len(test_readable))
            test_labels = torch.from_numpy(self.test_labels[test_readable])
        return Source(
            name=self.name,
            images=images,
            labels=torch.from_numpy(self.labels[readable]),
            test=test,
            test_labels=test_labels,
            classes=self.classes,
            appearance=measure_appearance(images),
            notes=tuple(self.notes),
        )

    def _note_unreadable(self, readable: NDArray[np.bool_]) -> None:
        unlabeled = self.labels < 0
        require_readable(_describe_all(self.images, ~readable & ~unlabeled))
        bad = _describe_all(self.images, ~readable & unlabeled)
        self.notes += describe_unreadable("unlabeled", bad, int(unlabeled.sum()))


def choose_table_side(sizes: Sequence[tuple[int, int]]) -> int:
    """The picture size for these widths and heights.

    Squares of one size stay as they are, like arrays, unless they are very small or large.
    """
    if len(set(sizes)) == 1:
        width, height = sizes[0]
        if width == height and MIN_SIDE <= width <= PICTURE_SIZES[-1]:
            return width
    return choose_picture_size([min(size) for size in sizes])


def join_parts(
    name: str, parts: Sequence[TablePart], unknown_classes: Collection[str] = ()
) -> PictureTable:
    """The training and test pictures of all parts; only `unknown_classes` may be in the test alone.

    Labels of a split called `unlabeled` are not used. Without a test set, `validation` is it.
    """
    notes: list[str] = []
    by_split = _group_by_split(parts, notes)
    train = by_split[TRAIN] + [
        TablePart(UNLABELED, part.pictures, np.full_like(part.labels, -1), ())
        for part in by_split[UNLABELED]
    ]
    if not sum(len(part.pictures) for part in train):
        raise UserError(
            f"no pictures to train on in {name}; name files for training too, such as "
            "'{train,test}.parquet', or add rows that are not for testing"
        )
    test = _choose_test(by_split, notes)
    order = _class_order([*train, *test])
    used, tested = _used_names(train), _used_names(test)
    classes = require_classes(name, used, tested, unknown_classes)
    classes = tuple(sorted(classes, key=order.index))
    return PictureTable(
        name=name,
        images=JoinedPictures([part.pictures for part in train]),
        labels=_join_labels(train, classes),
        test=JoinedPictures([part.pictures for part in test]),
        test_labels=_join_labels(test, classes),
        classes=classes,
        notes=notes,
    )


def _group_by_split(parts: Sequence[TablePart], notes: list[str]) -> dict[str, list[TablePart]]:
    groups: dict[str, list[TablePart]] = {split: [] for split in sorted(set(SPLITS.values()))}
    others: dict[str, int] = {}
    for part in parts:
        if (split := SPLITS.get(part.split.lower())) is not None:
            groups[split].append(part)
        else:
            others[part.split] = others.get(part.split, 0) + len(part.pictures)
    for split, count in others.items():
        known = f"{TRAIN}, {UNLABELED}, {TEST} or {VALIDATION}"
        notes.append(
            f"{pluralize(count, 'picture')} of the split {split!r} left out: it is not {known}"
        )
    return groups


def _choose_test(groups: dict[str, list[TablePart]], notes: list[str]) -> list[TablePart]:
    """The labeled test pictures, or else those for validation."""
    test, validation = groups[TEST], groups[VALIDATION]
    if test and all((part.labels < 0).all() for part in test):  # as published for competitions
        notes.append("the test pictures have no labels: they are not used")
        test = []
    if validation:
        notes.append(
            f"the split {validation[0].split!r} is "
            f"{'not used: there is a test set' if test else 'used as the test set'}"
        )
    test = test or validation
    for part in test:
        if (part.labels < 0).any():
            place = part.pictures.describe(int((part.labels < 0).argmax()))
            raise UserError(f"{place}: a test picture needs a label; add it, or remove the row")
    return test


def _class_order(parts: Sequence[TablePart]) -> tuple[str, ...]:
    """The order that all files agree on, or else the natural order of the names."""
    orders = {part.names for part in parts if part.names and part.ordered}
    unordered = any(part.names and not part.ordered for part in parts)
    if len(orders) == 1 and not unordered:
        return orders.pop()
    return sort_classes(name for part in parts for name in part.names)


def _used_names(parts: Sequence[TablePart]) -> set[str]:
    return {
        part.names[code]
        for part in parts
        for code in np.unique(part.labels[part.labels >= 0]).tolist()
    }


def _join_labels(parts: Sequence[TablePart], classes: tuple[str, ...]) -> Codes:
    numbers = {name: number for number, name in enumerate(classes)}
    labels = [np.empty(0, np.int64)]
    for part in parts:
        # The last entry is for pictures without a label, whose code is -1.
        codes = np.array([*(numbers.get(name, -1) for name in part.names), -1])
        labels.append(codes[part.labels])
    return np.concatenate(labels)


def _decode(
    encoded: EncodedPictures, shape: tuple[int, int, int], max_bytes: int | None
) -> tuple[ImageStore, NDArray[np.bool_]]:
    channels, height, width = shape
    store = EncodedStore(encoded, (height, width), channels)
    pixels, flags = decode_pictures(store, max_bytes)
    readable = np.array(flags, dtype=bool)
    if pixels is not None:
        return TensorStore(pixels), readable
    if readable.all():
        return store, readable
    kept = PictureSubset(encoded, readable.nonzero()[0])
    return EncodedStore(kept, (height, width), channels), readable


def _describe_all(pictures: EncodedPictures, chosen: NDArray[np.bool_]) -> list[str]:
    return [pictures.describe(position) for position in chosen.nonzero()[0].tolist()]
