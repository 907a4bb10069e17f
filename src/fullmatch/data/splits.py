"""Splits: which images keep their labels, drawn per class by a seed and saved with a hash."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fullmatch.errors import UserError


@dataclass(frozen=True)
class Split:
    """The labels that a run may use. Their classes are saved to recognize the data set."""

    dataset: str
    labels: int  # number of labels requested
    seed: int
    images: int  # number of training images in the data set
    labeled: tuple[int, ...]  # positions, ascending
    targets: tuple[int, ...]  # the class of each

    @property
    def hash(self) -> str:
        """SHA-256 of the content, independent of the layout of the file."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({**asdict(self), "sha256": self.hash}) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Split":
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            split = cls(**{f.name: _list_to_tuple(content[f.name]) for f in fields(cls)})
            stored_hash = content["sha256"]
        except OSError as error:
            raise UserError(
                f"cannot read the split {path}: {error.strerror}; check its path"
            ) from None
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path} is not a split file; draw a new split by its seed") from None
        if split.hash != stored_hash:
            raise UserError(
                f"the split {path} was changed after it was written (its hash does not match); "
                "draw it again by its seed"
            )
        return split

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
) -> Split:
    """Draw `count` labels, the same number per class, uniformly and without replacement.

    Any remainder goes to classes chosen by the seed. A larger draw with the same seed contains
    the smaller one. Images with label -1 are never drawn.
    """
    _check_request(count, seed, num_classes, name)
    # Raw bits, because NumPy keeps them the same in every version, unlike its shuffles.
    keys = np.random.PCG64(seed).random_raw(num_classes + len(labels))
    per_class = _labels_per_class(count, keys[:num_classes])
    order = np.argsort(keys[num_classes:], kind="stable")
    shuffled = labels.numpy(force=True)[order]
    drawn = []
    for label, needed in enumerate(per_class):
        members = order[shuffled == label]
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
    )


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


def _list_to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
