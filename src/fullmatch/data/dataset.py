"""The data of a run: images, labels, and which of the labels training may use."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from fullmatch.core import Appearance
from fullmatch.data.splits import Split
from fullmatch.data.stores.image_store import ImageStore, evenly_spaced


@dataclass(frozen=True, kw_only=True)
class Source:
    """Images and labels as loaded, before a split decides which labels a run may use.

    All loaders return one, and so does a data set of your own, by `module:function`.
    """

    name: str
    images: ImageStore  # TensorStore(tensor) for uint8 images (N, C, H, W) in memory
    labels: Tensor  # (N,) int64, -1 if unknown
    test: ImageStore | None = None  # of the same shape
    test_labels: Tensor | None = None  # (T,) int64, all known
    classes: tuple[str, ...]
    unknown_classes: tuple[str, ...] = ()  # classes without labels, see `data.open_set`
    unknown_test: ImageStore | None = None  # their test images, which are not in `test`
    appearance: Appearance
    benchmark: bool = False  # all labels are known, and a split hides most of them
    notes: tuple[str, ...] = ()  # sentences for the user

    @property
    def num_classes(self) -> int:
        return len(self.classes)


@dataclass(frozen=True, kw_only=True)
class SemiDataset(Source):
    """A source with the positions of its labeled and unlabeled images."""

    labeled: Tensor  # positions of the images whose labels may be used
    unlabeled: Tensor  # positions of all images, unless a split chooses some of them
    balance: bool = True  # whether labeled pictures of small classes may be repeated
    balance_note: str = ""  # the one of `notes` that says which classes are repeated, if any

    @classmethod
    def from_source(cls, source: Source, split: Split | None = None) -> "SemiDataset":
        """Use the images and labels of a split; without one, use all images and known labels."""
        unlabeled = torch.arange(len(source.images))
        if split is None:
            labeled = (source.labels >= 0).nonzero().flatten()
        else:
            split.check(source.name, source.labels)
            labeled = torch.tensor(split.labeled, dtype=torch.int64)
            if split.unlabeled is not None:
                unlabeled = torch.tensor(split.unlabeled, dtype=torch.int64)
        shared = {field.name: getattr(source, field.name) for field in fields(Source)}
        return cls(**shared, labeled=labeled, unlabeled=unlabeled)

    @property
    def image_count(self) -> int:
        """Number of training images, labeled or not, each counted once."""
        return len(torch.unique(torch.cat([self.labeled, self.unlabeled])))

    @property
    def class_prior(self) -> tuple[float, ...]:
        """Class frequencies of the labeled images, each counted once."""
        return tuple(count / sum(self.label_counts) for count in self.label_counts)

    @property
    def batch_prior(self) -> tuple[float, ...]:
        """Class frequencies in labeled batches, where images of small classes are repeated."""
        counts = torch.bincount(self.labels[self.labeled], minlength=self.num_classes)
        return tuple((counts.double() / counts.sum()).tolist())

    @property
    def label_counts(self) -> list[int]:
        """Labels per class; an image that is repeated to balance the classes counts once."""
        labels = self.labels[torch.unique(self.labeled)]
        counts: list[int] = torch.bincount(labels, minlength=self.num_classes).tolist()
        return counts


def measure_appearance(images: ImageStore, *, flip: bool = True) -> Appearance:
    """Mean and standard deviation of up to 10,000 images; the crop padding is 1/8 of the side."""
    index = evenly_spaced(len(images), 10_000)
    channels, height, width = images.shape
    # Integer histograms need little memory and give the same result on every machine.
    counts = torch.zeros(channels, 256, dtype=torch.int64)
    for start in range(0, len(index), 500):
        batch = images.read(index[start : start + 500]).cpu()
        for channel, values in enumerate(batch.transpose(0, 1)):
            counts[channel] += torch.bincount(values.flatten(), minlength=256)
    levels = torch.arange(256, dtype=torch.float64) / 255
    weights = counts.double() / counts.sum(dim=1, keepdim=True)
    mean = weights @ levels
    variance = weights @ levels.square() - mean.square()
    # At least one gray level, so that blank images can be divided by it.
    std = variance.clamp(min=0).sqrt().clamp(min=1 / 255)
    return Appearance(
        mean=tuple(mean.tolist()),
        std=tuple(std.tolist()),
        flip=flip,
        padding=max(1, min(height, width) // 8),
    )


def clean_class_name(name: str) -> str:
    """A class name without needless blanks, in composed Unicode.

    Some file systems and spreadsheets store an accent as a character of its own, which looks equal
    and would make a second class.
    """
    return " ".join(unicodedata.normalize("NFC", name).split())


def sort_classes(names: Iterable[str]) -> tuple[str, ...]:
    """Unique class names in natural order: 'class 2' before 'class 10'."""

    def key(name: str) -> tuple[list[str | int], str]:
        parts = re.split(r"(\d+)", name.casefold())
        return [int(part) if i % 2 else part for i, part in enumerate(parts)], name

    return tuple(sorted(set(names), key=key))
