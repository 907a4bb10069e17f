"""The picture files of a user's data set, and how they become a source of one picture size.

Loading makes two passes over the files: `choose_form` reads all headers, `_decode` decodes every
file once.
"""

import math
import statistics
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress

import torch
from torch import Tensor

from fullmatch.data.dataset import Source, measure_appearance, sort_classes
from fullmatch.data.stores import pictures
from fullmatch.data.stores.encoded import EncodedPictures, EncodedStore
from fullmatch.data.stores.files import FileStore, PictureFileList
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError, pluralize

PICTURE_SIZES = (32, 64, 96, 128, 160, 192, 224)
MAX_BYTES_IN_MEMORY = 4 * 2**30  # larger data sets are decoded when they are read
WARN_UNREADABLE = 0.05  # share of unreadable pictures that is worth a warning
MAX_UNREADABLE = 0.5  # share of unreadable pictures above which training does not start


@dataclass
class PictureFiles:
    """Paths of picture files with their labels, and notes for the user."""

    labeled: list[tuple[str, str]]
    unlabeled: list[str]
    test: list[tuple[str, str]]
    notes: list[str] = field(default_factory=list)

    def to_source(
        self,
        name: str,
        size: int | None,
        *,
        max_bytes: int | None = None,
        unknown_classes: Collection[str] = (),
    ) -> Source:
        """Decode the pictures into a source.

        Unreadable labeled pictures are an error; other unreadable pictures are left out and noted.
        Only `unknown_classes` may have test pictures and no labeled one.
        """
        classes = require_classes(
            name,
            {label for _, label in self.labeled},
            {label for _, label in self.test},
            unknown_classes,
        )
        if not self.unlabeled:
            self.notes.append("no unlabeled pictures: training uses only the labeled ones")
        labeled_paths = [path for path, _ in self.labeled]
        side, channels = choose_form(labeled_paths + self.unlabeled)
        shape = (channels, size or side, size or side)

        images, readable = _decode(labeled_paths + self.unlabeled, shape, max_bytes)
        require_readable(_list_unreadable(labeled_paths, readable[: len(labeled_paths)]))
        bad = _list_unreadable(self.unlabeled, readable[len(labeled_paths) :])
        self.notes += describe_unreadable("unlabeled", bad, len(self.unlabeled))
        unlabeled_count = sum(readable) - len(labeled_paths)
        labels = torch.cat([_encode(self.labeled, classes), torch.full((unlabeled_count,), -1)])

        test, test_labels = None, None
        if self.test:
            test_paths = [path for path, _ in self.test]
            test, readable = _decode(test_paths, shape, max_bytes)
            bad = _list_unreadable(test_paths, readable)
            self.notes += describe_unreadable("test", bad, len(test_paths))
            test_labels = _encode(list(compress(self.test, readable)), classes)
        return Source(
            name=name,
            images=images,
            labels=labels,
            test=test,
            test_labels=test_labels,
            classes=classes,
            appearance=measure_appearance(images),
            notes=tuple(self.notes),
        )


@dataclass
class PictureSurvey(PictureFiles):
    """Picture files together with the problems that loading would reject or skip."""

    empty_classes: dict[str, str] = field(default_factory=dict)  # class -> its empty folder
    conflicts: list[tuple[str, str]] = field(default_factory=list)  # file, error message
    skipped: dict[str, str] = field(default_factory=dict)  # files that are not pictures -> kind
    unknown_folders: list[str] = field(default_factory=list)  # not labeled, unlabeled or test
    loose_pictures: list[str] = field(default_factory=list)  # outside the class folders

    def items(self) -> Iterator[tuple[str, str, str]]:
        """Path, part and label ('' if there is none) of every picture."""
        yield from ((path, "labeled", label) for path, label in self.labeled)
        yield from ((path, "unlabeled", "") for path in self.unlabeled)
        yield from ((path, "test", label) for path, label in self.test)


def require_classes(
    name: str, labeled: Collection[str], tested: Collection[str], unknown_classes: Collection[str]
) -> tuple[str, ...]:
    """All classes of a data set; `UserError` where labels are missing."""
    classes = sort_classes(labeled)
    if len(classes) < 2:
        content = f"only the class {classes[0]!r}" if classes else "no labeled pictures"
        raise UserError(f"{name} has {content}; label pictures of at least 2 classes")
    unlabeled = set(tested) - set(classes)
    if unexpected := sort_classes(unlabeled - set(unknown_classes)):
        raise UserError(
            f"the test pictures of {name} have a class {unexpected[0]!r} that no labeled "
            "picture has; label some pictures of this class, or remove it from the test set, "
            "or treat it as unknown: --set data.unknown_classes=NAME"
        )
    return sort_classes({*classes, *unlabeled})


def require_readable(bad: Sequence[str]) -> None:
    """`UserError` for labeled pictures that cannot be read."""
    if bad:
        raise UserError(
            f"{pluralize(bad, 'labeled picture')} cannot be read: {_first_three(bad)}; "
            "repair or remove the damaged files"
        )


def describe_unreadable(part: str, bad: Sequence[str], total: int) -> list[str]:
    """A note on pictures that are left out, if any; `UserError` where they are too many."""
    if not bad:
        return []
    share = len(bad) / total
    if share > MAX_UNREADABLE:
        raise UserError(
            f"{len(bad)} of {total} {part} pictures cannot be read: {_first_three(bad)}; "
            "check whether these files are pictures"
        )
    note = f"{pluralize(bad, f'unreadable {part} picture')} left out"
    if share > WARN_UNREADABLE:
        note = f"WARNING: {note} ({share:.0%})"
    return [f"{note}: {_first_three(bad)}"]


def choose_picture_size(short_sides: Sequence[int]) -> int:
    """The largest of `PICTURE_SIZES` that the median picture fills."""
    median = statistics.median(short_sides) if short_sides else PICTURE_SIZES[0]
    return max((size for size in PICTURE_SIZES if size <= median), default=PICTURE_SIZES[0])


def choose_form(paths: Sequence[str]) -> tuple[int, int]:
    """First pass, headers only: the picture size, and 1 channel if all are gray, else 3."""
    headers = read_headers(PictureFileList(paths))
    if not headers:
        return PICTURE_SIZES[0], 3
    side = choose_picture_size([header.short_side for header in headers])
    return side, 1 if all(header.is_gray for header in headers) else 3


def read_headers(encoded: EncodedPictures) -> list[pictures.Header]:
    """The headers of the pictures that have one."""

    def read(position: int) -> pictures.Header:
        return pictures.read_header(encoded.open(position))

    results = pictures.map_in_threads(
        lambda position: pictures.try_read(read, position), range(len(encoded))
    )
    return [header for header in results if header is not None]


def _decode(
    paths: Sequence[str], shape: tuple[int, int, int], max_bytes: int | None
) -> tuple[ImageStore, list[bool]]:
    channels, height, width = shape
    pixels, readable = decode_pictures(FileStore(paths, (height, width), channels), max_bytes)
    kept = list(compress(paths, readable))
    if pixels is None:
        return FileStore(kept, (height, width), channels), readable
    return TensorStore(pixels, kept), readable


def decode_pictures(
    store: EncodedStore, max_bytes: int | None = None
) -> tuple[Tensor | None, list[bool]]:
    """Second pass: decode every picture; the pixels of readable ones, if they fit into memory."""
    limit = MAX_BYTES_IN_MEMORY if max_bytes is None else max_bytes
    if len(store) * math.prod(store.shape) > limit:
        return None, store.decode_all()
    pixels = torch.empty((len(store), *store.shape), dtype=torch.uint8)
    readable = store.decode_all(pixels)
    return pixels if all(readable) else pixels[torch.tensor(readable)], readable


def _encode(labeled: Sequence[tuple[str, str]], classes: tuple[str, ...]) -> Tensor:
    codes = {label: code for code, label in enumerate(classes)}
    return torch.tensor([codes[label] for _, label in labeled], dtype=torch.int64)


def _list_unreadable(paths: Sequence[str], readable: Sequence[bool]) -> list[str]:
    return [path for path, ok in zip(paths, readable, strict=True) if not ok]


def _first_three(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more
