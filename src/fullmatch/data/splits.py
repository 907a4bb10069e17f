"""Splits: which images keep their labels, and which are unlabeled, drawn by a seed."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fullmatch.data.long_tail import (
    class_weights,
    largest_long_tailed_sizes,
    least_total,
    long_tailed_sizes,
)
from fullmatch.errors import UserError
from fullmatch.storage.atomic import replacing
from fullmatch.storage.json_files import from_json, read_json


@dataclass(frozen=True)
class Split:
    """The labels that a run may use. Their classes are saved to recognize the data set."""

    dataset: str
    labels: int  # number of labels requested
    seed: int
    images: int  # number of training images in the data set
    labeled: tuple[int, ...]  # positions, ascending
    targets: tuple[int, ...]  # the class of each
    unknown_classes: tuple[str, ...] = ()  # classes without labels; the others are renumbered
    imbalance: float = 1.0  # of the labels, see `data.long_tail`
    # Positions of the unlabeled images, ascending, none of them labeled; None: all images.
    unlabeled: tuple[int, ...] | None = None
    unlabeled_imbalance: float | None = None  # of the unlabeled images; None: as it happens

    @property
    def content(self) -> dict[str, Any]:
        """What is saved: fields with their default are left out, as older splits lack them."""
        return {
            f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default
        }

    @property
    def hash(self) -> str:
        """SHA-256 of the content, independent of the layout of the file."""
        return _hash_content(self.content)

    def save(self, path: Path) -> None:
        with replacing(path) as place:
            text = json.dumps({**self.content, "sha256": self.hash})
            place.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Split":
        try:
            content = read_json(path)
            stored_hash = content.pop("sha256")
            split = from_json(cls, content)
        except OSError as error:
            raise UserError(
                f"cannot read the split {path}: {error.strerror}; check its path"
            ) from None
        except (ValueError, KeyError) as error:
            reason = "it has no sha256" if isinstance(error, KeyError) else error
            raise UserError(
                f"{path} is not a split file ({reason}); draw a new split by its seed"
            ) from None
        if _hash_content(content) != stored_hash:
            raise UserError(
                f"the split {path} was changed after it was written (its hash does not match); "
                "draw it again by its seed"
            )
        split.check_positions(path)
        return split

    def check_positions(self, path: Path) -> None:
        """`UserError` where a position is not that of an image, or has no class."""
        valid = len(self.targets) == len(self.labeled) and min(self.targets, default=0) >= 0
        for positions in (self.labeled, self.unlabeled or ()):
            valid &= all(first < second for first, second in pairwise(positions))
            valid &= all(0 <= at < self.images for at in positions)
        if not valid:
            raise UserError(f"{path} has impossible positions; draw a new split by its seed")

    def check(self, dataset: str, labels: Tensor) -> None:
        """Raise an error unless this split was drawn from the given data set."""
        same = self.dataset == dataset and self.images == len(labels)
        if not same or labels[list(self.labeled)].tolist() != list(self.targets):
            raise UserError(
                f"this split was drawn from {self.dataset} ({self.images} images) and does not "
                f"match {dataset} ({len(labels)} images); draw a split for these images"
            )


def draw_split(
    labels: Tensor,
    count: int,
    seed: int,
    num_classes: int,
    name: str,
    classes: Sequence[str] | None = None,
    imbalance: float = 1.0,
) -> Split:
    """Draw `count` labels, uniformly and without replacement within each class.

    All classes get the same number, and any remainder goes to classes chosen by the seed. With an
    imbalance above 1 their numbers fall from the first class to the last. A larger draw with the
    same seed contains the smaller one. Images with label -1 are never drawn.
    """
    _check_request(count, seed, num_classes, name)
    shuffled = _shuffle(labels, seed, num_classes)
    if imbalance == 1:
        per_class = _labels_per_class(count, shuffled.class_keys)
    else:
        per_class = _long_tailed_labels(count, imbalance, num_classes)
    drawn = []
    for label, (members, needed) in enumerate(zip(shuffled.members, per_class, strict=True)):
        if len(members) < needed:
            class_name = classes[label] if classes else label
            raise UserError(
                f"class {class_name!r} of {name} has {len(members)} labeled images, {needed} "
                f"are needed for {count} labels; ask for fewer labels"
            )
        drawn.append(members[:needed])
    positions = np.sort(np.concatenate(drawn))
    return Split(
        dataset=name,
        labels=count,
        seed=seed,
        images=len(labels),
        labeled=tuple(positions.tolist()),
        targets=tuple(labels[torch.from_numpy(positions)].tolist()),
        imbalance=imbalance,
    )


def draw_unlabeled(
    split: Split, labels: Tensor, num_classes: int, count: int | None, imbalance: float | None
) -> Split:
    """The split with unlabeled images, drawn by its seed from those that it does not label.

    `count` is their number; None: as many as there are. With an imbalance their classes have the
    sizes of a long tail; without one they are drawn uniformly from all images.
    """
    shuffled = _shuffle(labels, split.seed, num_classes)
    if imbalance is None:
        candidates = [shuffled.order]
        weights = np.ones(1)
    else:
        if (labels < 0).any():
            raise UserError(
                "data.unlabeled_imbalance needs the class of every image, which is not known for "
                f"{split.dataset}; leave it out, or choose a number with data.unlabeled"
            )
        candidates = shuffled.members
        weights = class_weights(imbalance, num_classes)
    free = np.ones(len(labels), dtype=bool)
    free[list(split.labeled)] = False
    candidates = [positions[free[positions]] for positions in candidates]
    sizes = largest_long_tailed_sizes(np.array([len(each) for each in candidates]), weights)
    if sizes.sum() < (1 if count is None else count):
        shape = "" if imbalance is None else f" with an imbalance of {imbalance:g}"
        raise UserError(
            f"besides the labeled images, {split.dataset} has {sizes.sum()} unlabeled ones{shape}, "
            f"fewer than data.unlabeled = {count or 1}; ask for fewer unlabeled or labeled images"
        )
    if count is not None:
        sizes = long_tailed_sizes(count, weights)
    drawn = np.concatenate([each[:size] for each, size in zip(candidates, sizes, strict=True)])
    positions = tuple(np.sort(drawn).tolist())
    return replace(split, unlabeled=positions, unlabeled_imbalance=imbalance)


def count_long_tail(labels: Tensor, num_classes: int, imbalance: float) -> int:
    """The most labels that can be drawn with this imbalance."""
    available = np.bincount(labels[labels >= 0].numpy(force=True), minlength=num_classes)
    return int(largest_long_tailed_sizes(available, class_weights(imbalance, num_classes)).sum())


class _Shuffle(NamedTuple):
    """The images in an order that is decided by a seed."""

    class_keys: NDArray[np.uint64]  # a random number for each class
    order: NDArray[np.int64]  # all positions
    members: list[NDArray[np.int64]]  # those of each class


def _shuffle(labels: Tensor, seed: int, num_classes: int) -> _Shuffle:
    # Raw bits, because NumPy keeps them the same in every version, unlike its shuffles.
    keys = np.random.PCG64(seed).random_raw(num_classes + len(labels))
    order = np.argsort(keys[num_classes:], kind="stable")
    shuffled = labels.numpy(force=True)[order]
    members = [order[shuffled == label] for label in range(num_classes)]
    return _Shuffle(keys[:num_classes], order, members)


def _check_request(count: int, seed: int, num_classes: int, name: str) -> None:
    if seed < 0:
        raise UserError(f"the seed of a split cannot be negative, got {seed}; use 0 or more")
    if count < num_classes:
        raise UserError(
            f"{count} labels are fewer than the {num_classes} classes of {name}; "
            f"ask for at least {num_classes}"
        )


def _labels_per_class(count: int, keys: NDArray[np.uint64]) -> list[int]:
    """Equal shares; the classes with the smallest keys get the remainder."""
    share, remainder = divmod(count, len(keys))
    per_class = np.full(len(keys), share)
    per_class[np.argsort(keys, kind="stable")[:remainder]] += 1
    return per_class.tolist()


def _long_tailed_labels(count: int, imbalance: float, num_classes: int) -> list[int]:
    weights = class_weights(imbalance, num_classes)
    sizes: list[int] = long_tailed_sizes(count, weights).tolist()
    if not all(sizes):
        raise UserError(
            f"{count} labels with an imbalance of {imbalance:g} leave none for the smallest "
            f"class; ask for at least {least_total(weights)} labels, or a smaller imbalance"
        )
    return sizes


def _hash_content(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
