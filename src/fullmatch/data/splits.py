"""Which images keep their labels: drawn per class by seed, kept as a file with a hash."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fullmatch.errors import UserError


@dataclass(frozen=True)
class Split:
    """The labels a run may see. The classes of its images are kept to recognise the data set."""

    dataset: str
    labels: int  # how many labels were asked for
    seed: int
    images: int  # how many training images the data set has
    labeled: tuple[int, ...]  # positions, ascending
    targets: tuple[int, ...]  # the class of each

    @property
    def hash(self) -> str:
        """SHA-256 of the content, independent of how a file lays it out."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({**asdict(self), "sha256": self.hash}) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Split":
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            split = cls(**{f.name: _plain(content[f.name]) for f in fields(cls)})
            stored = content["sha256"]
        except OSError as error:
            raise UserError(
                f"cannot read the split {path}: {error.strerror}; check its path"
            ) from None
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path} is not a split file; draw a new split by its seed") from None
        if split.hash != stored:
            raise UserError(
                f"the split {path} was changed after it was written (its hash does not match); "
                "draw it again by its seed"
            )
        return split

    def check(self, dataset: str, labels: Tensor) -> None:
        """Refuses a data set that this split was not drawn from."""
        known = self.dataset == dataset and self.images == len(labels)
        if not known or labels[list(self.labeled)].tolist() != list(self.targets):
            raise UserError(
                f"this split was drawn from {self.dataset} ({self.images} images) and does not "
                f"fit {dataset} ({len(labels)} images); draw a split for these images"
            )


def draw(
    labels: Tensor,
    count: int,
    seed: int,
    num_classes: int,
    name: str,
    classes: Sequence[str] | None = None,
) -> Split:
    """Draws `count` labels, equally many per class, uniformly and without replacement.

    What does not divide evenly goes to classes chosen by the seed. A larger draw by the same
    seed contains the smaller one. Images with label -1 are never drawn.
    """
    if seed < 0:
        raise UserError(f"the seed of a split cannot be negative, got {seed}; use 0 or more")
    if count < num_classes:
        raise UserError(
            f"{count} labels are fewer than the {num_classes} classes of {name}; "
            f"ask for at least {num_classes}"
        )
    # Raw bits, because NumPy promises the same ones in every version, and shuffles it does not.
    keys = np.random.PCG64(seed).random_raw(num_classes + len(labels))
    share, rest = divmod(count, num_classes)
    wanted = np.full(num_classes, share)
    wanted[np.argsort(keys[:num_classes], kind="stable")[:rest]] += 1

    order = np.argsort(keys[num_classes:], kind="stable")
    shuffled = labels.numpy(force=True)[order]
    drawn = []
    for label in range(num_classes):
        members = order[shuffled == label]
        if len(members) < wanted[label]:
            known = classes[label] if classes else label
            raise UserError(
                f"class {known!r} of {name} has {len(members)} labeled images, {wanted[label]} "
                f"are needed for {count} labels; ask for fewer labels"
            )
        drawn.append(members[: wanted[label]])
    positions = np.sort(np.concatenate(drawn))
    targets = labels[torch.from_numpy(positions)]
    return Split(
        dataset=name,
        labels=count,
        seed=seed,
        images=len(labels),
        labeled=tuple(positions.tolist()),
        targets=tuple(targets.tolist()),
    )


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
