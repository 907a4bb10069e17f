"""SemCo (Nassar et al., CVPR 2021): a classifier and the meaning of class names teach each other.

A second head predicts the embedding of the class's name; classes of like meaning form a group, and
an image near enough to a group is labeled by it. The embeddings are the user's, one row a class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.algorithms.about import About
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.heads import Headed, perceptron
from fullmatch.algorithms.pseudo_labeling import Step
from fullmatch.config.limits import Amount, Cosine
from fullmatch.core import Objective, Task
from fullmatch.errors import UserError
from fullmatch.losses import cosine_distance, cross_entropy, inner_products

HIDDEN = 2048  # units of the embedding head


class Meaning(nn.Module):
    """Both heads learn from the labels of both, on strong views and on labeled ones."""

    embeddings: Tensor  # (C, d)
    groups: Tensor  # (G, C), 1 where a class belongs to a group

    def __init__(self, embeddings: Tensor, group: Tensor, spec: "SemCo") -> None:
        super().__init__()
        self.spec = spec
        self.register_buffer("embeddings", embeddings)
        self.register_buffer("groups", F.one_hot(group).T.float())

    def guess(self, weak: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # (U, d), (U,), (U,)
        """By the nearest group: the mean of its embeddings, its likeliest class, and 1 if near."""
        units = F.normalize(self.embeddings, dim=1)
        cosine = inner_products(F.normalize(weak.float(), dim=1), units)  # (U, C)
        means = inner_products(cosine, self.groups / self.groups.sum(dim=1, keepdim=True))
        score, nearest = means.max(dim=1)
        inside = cosine.masked_fill(self.groups[nearest] == 0, -torch.inf).softmax(dim=1)
        meaning = inner_products(inside, self.embeddings.T)
        return meaning, inside.argmax(dim=1), (score >= self.spec.group_threshold).float()

    def forward(self, step: Step) -> Objective:
        labeled, weak, strong = step.passes.heads
        spec, (_, label, _, weight) = self.spec, step.pseudo
        with torch.no_grad():
            meaning, guess, near = self.guess(weak)
        cross = cross_entropy(step.passes.strong[0].logits, guess, near)
        supervised = cosine_distance(labeled, self.embeddings[step.batch.labels])
        consistency = cosine_distance(strong, meaning, near)
        consistency = consistency + cosine_distance(strong, self.embeddings[label], weight)
        # The authors scale the cross term by a third of the embeddings' weight.
        unlabeled = spec.coefficient * (spec.meaning / 3 * cross + spec.meaning * consistency)
        return Objective(
            spec.meaning * supervised + unlabeled,
            {"meaning": supervised, "near_group": near.mean()},
        )


def read_embeddings(path: str, num_classes: int) -> Tensor:  # (C, d)
    """From .npy, .npz (its first array), .csv or text in columns."""
    if not path:
        raise UserError(
            "semco needs embeddings of the class names: use --set "
            "algorithm.embeddings=FILE, a .npy, .npz, .csv or text file "
            f"with {num_classes} rows of numbers, in the order of the classes"
        )
    try:
        if path.endswith(".npz"):
            with np.load(path) as arrays:
                rows = arrays[arrays.files[0]]
        elif path.endswith(".npy"):
            rows = np.load(path)
        else:
            rows = np.loadtxt(path, delimiter="," if path.endswith(".csv") else None, ndmin=2)
        rows = np.asarray(rows, dtype=np.float32)
    except (OSError, ValueError, IndexError) as error:
        raise UserError(
            f"cannot read embeddings from {path}: {error}; supply numbers only"
        ) from None
    if rows.ndim != 2 or len(rows) != num_classes or not np.isfinite(rows).all():
        raise UserError(
            f"{path} holds {rows.shape}; semco needs finite numbers, a row for each of the "
            f"{num_classes} classes"
        )
    return torch.from_numpy(rows)


def grouped(embeddings: Tensor) -> Tensor:  # (C, d) -> (C,) int64
    """The group of each class, by density in cosine distance; five or fewer mean no groups."""
    from sklearn.cluster import DBSCAN

    width = embeddings.shape[1]
    reach = 0.15 if width < 100 else 0.2 if width < 256 else 0.28
    group = DBSCAN(eps=reach, min_samples=1, metric="cosine").fit(embeddings.numpy()).labels_
    if group.max() + 1 <= 5:
        group = np.arange(len(embeddings))
    return torch.from_numpy(np.asarray(group, dtype=np.int64))


@dataclass(frozen=True, kw_only=True)
class SemCo(FixMatch):
    about: ClassVar[About] = About("SemCo", 2021, "class names' meaning teaches the classifier")
    ratio: ClassVar[int] = 3

    embeddings: str = ""  # file of the class embeddings
    meaning: Amount = 3.0  # weight of the embeddings' losses
    group_threshold: Cosine = 0.7  # least mean cosine with a group

    def extras(self, task: Task) -> Sequence[nn.Module]:
        embeddings = read_embeddings(self.embeddings, task.num_classes)
        return (Meaning(embeddings, grouped(embeddings), self),)

    def build(self, task: Task) -> Headed:
        plain = super().build(task)
        meaning = plain.extras[0]
        assert isinstance(meaning, Meaning)
        width = meaning.embeddings.shape[1]
        return Headed(plain, perceptron(task.features, HIDDEN, width))
