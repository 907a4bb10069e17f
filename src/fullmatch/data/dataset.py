"""What a run is given: pictures, the labels that are known, and which of them it may see."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from fullmatch.core import Appearance
from fullmatch.data.splits import Split
from fullmatch.data.stores.image_store import ImageStore, evenly_spaced


@dataclass(frozen=True, kw_only=True)
class Source:
    """Pictures as they were found, before anybody decides which labels a run may see."""

    name: str
    images: ImageStore
    labels: Tensor  # (N,) int64, -1 where nobody knows
    test: ImageStore | None = None
    test_labels: Tensor | None = None  # (T,) int64
    classes: tuple[str, ...]
    appearance: Appearance
    benchmark: bool = False  # its labels are known, and a split hides them
    notes: tuple[str, ...] = ()  # sentences for the user

    @property
    def num_classes(self) -> int:
        return len(self.classes)


@dataclass(frozen=True, kw_only=True)
class SemiDataset(Source):
    """A source with its labeled and unlabeled images told apart."""

    labeled: Tensor  # positions into `images` whose labels may be used
    unlabeled: Tensor  # positions into `images`: all of them, as the protocol says

    @classmethod
    def of(cls, source: Source, split: Split | None = None) -> "SemiDataset":
        """Without a split, every label that is known is used."""
        if split is None:
            labeled = (source.labels >= 0).nonzero().flatten()
        else:
            split.check(source.name, source.labels)
            labeled = torch.tensor(split.labeled, dtype=torch.int64)
        shared = {field.name: getattr(source, field.name) for field in fields(Source)}
        return cls(**shared, labeled=labeled, unlabeled=torch.arange(len(source.images)))

    @property
    def class_prior(self) -> tuple[float, ...]:
        """Frequencies of the classes among the labeled images."""
        counts = torch.bincount(self.labels[self.labeled], minlength=self.num_classes)
        return tuple((counts.double() / counts.sum()).tolist())

    @property
    def label_counts(self) -> list[int]:
        """Labels of each class; a picture that is repeated to even them out counts once."""
        labels = self.labels[torch.unique(self.labeled)]
        counts: list[int] = torch.bincount(labels, minlength=self.num_classes).tolist()
        return counts


def measured_appearance(images: ImageStore, *, flip: bool = True) -> Appearance:
    """Mean and deviation of up to 10,000 evenly spread images; crops reach an eighth beyond."""
    index = evenly_spaced(len(images), 10_000)
    channels, height, width = images.shape
    # Counts of whole numbers: the same result on every machine, and little memory.
    counts = torch.zeros(channels, 256, dtype=torch.int64)
    for start in range(0, len(index), 500):
        part = images.read(index[start : start + 500]).cpu()
        for channel, values in enumerate(part.transpose(0, 1)):
            counts[channel] += torch.bincount(values.flatten(), minlength=256)
    levels = torch.arange(256, dtype=torch.float64) / 255
    weights = counts.double() / counts.sum(dim=1, keepdim=True)
    mean = weights @ levels
    variance = weights @ levels.square() - mean.square()
    # One grey level at least, so that a set of blank images can be divided by it.
    std = variance.clamp(min=0).sqrt().clamp(min=1 / 255)
    return Appearance(
        mean=tuple(mean.tolist()),
        std=tuple(std.tolist()),
        flip=flip,
        padding=max(1, min(height, width) // 8),
    )


def class_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names in the order people expect: 'class 2' before 'class 10'."""

    def key(name: str) -> tuple[list[str | int], str]:
        parts = re.split(r"(\d+)", name.casefold())
        return [int(part) if i % 2 else part for i, part in enumerate(parts)], name

    return tuple(sorted(set(names), key=key))
