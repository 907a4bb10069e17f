"""SemCo (Nassar et al., CVPR 2021): a classifier and class name embeddings teach each other.

A second head predicts the embedding of the class name. Classes with similar embeddings form a
group, and an image close to a group gets a label from it. The user supplies the embeddings, one row
per class.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.heads import Embeddings, HeadedPseudoLabeling, perceptron
from fullmatch.algorithms.pseudo_labeling import Passes, Step
from fullmatch.config.limits import Amount, Cosine
from fullmatch.core import About, Batch, Network, Objective, Task
from fullmatch.errors import UserError
from fullmatch.losses import cosine_distance, cross_entropy, inner_products

HIDDEN = 2048  # units of the embedding head


class GroupLabels(NamedTuple):
    """Labels from the nearest group of classes."""

    embedding: Tensor  # (U, d), mean of the group's embeddings, weighted by similarity
    label: Tensor  # (U,), most similar class of the group
    weight: Tensor  # (U,), 1 if the group is close enough, else 0


class SemanticLoss(nn.Module):
    """Both heads learn from the labels of both, on strong views and on labeled images."""

    embeddings: Tensor  # (C, d)
    groups: Tensor  # (G, C), 1 where a class belongs to a group

    def __init__(self, embeddings: Tensor, group: Tensor, spec: "SemCo") -> None:
        super().__init__()
        self.spec = spec
        self.register_buffer("embeddings", embeddings)
        self.register_buffer("groups", F.one_hot(group).T.float())

    def label_by_group(self, weak: Tensor) -> GroupLabels:  # (U, d)
        units = F.normalize(self.embeddings, dim=1)
        cosine = inner_products(F.normalize(weak.float(), dim=1), units)  # (U, C)
        means = inner_products(cosine, self.groups / self.groups.sum(dim=1, keepdim=True))
        score, nearest = means.max(dim=1)
        inside = cosine.masked_fill(self.groups[nearest] == 0, -torch.inf).softmax(dim=1)
        embedding = inner_products(inside, self.embeddings.T)
        close = (score >= self.spec.group_threshold).float()
        return GroupLabels(embedding, inside.argmax(dim=1), close)

    def forward(self, step: Step[Embeddings]) -> Objective:
        spec, pseudo, heads = self.spec, step.pseudo, step.passes.heads
        strong = heads.strong[0]
        with torch.no_grad():
            group = self.label_by_group(heads.weak)
        cross = cross_entropy(step.passes.strong[0].logits, group.label, group.weight)
        supervised = cosine_distance(heads.labeled, self.embeddings[step.batch.labels])
        consistency = cosine_distance(strong, group.embedding, group.weight)
        consistency = consistency + cosine_distance(
            strong, self.embeddings[pseudo.label], pseudo.weight
        )
        # The authors scale the cross term by a third of the embeddings' weight.
        unlabeled = spec.coefficient * (spec.meaning / 3 * cross + spec.meaning * consistency)
        return Objective(
            spec.meaning * supervised + unlabeled,
            {"meaning": supervised, "near_group": group.weight.mean()},
        )


class SemCoLoss(HeadedPseudoLabeling):
    """Adds the embeddings of all views to the passes."""

    def passes(
        self, student: Network, batch: Batch, teacher: Network | None = None
    ) -> Passes[Embeddings]:
        passes = super().passes(student, batch, teacher)
        return passes._replace(heads=self.embed(passes))


def read_embeddings(path: str, num_classes: int) -> Tensor:  # (C, d)
    """Read .npy, .npz (its first array), .csv, or text in columns."""
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
            f"cannot read embeddings from {path}: {error}; the file must hold only numbers"
        ) from None
    if rows.ndim != 2 or len(rows) != num_classes or not np.isfinite(rows).all():
        raise UserError(
            f"{path} has the shape {rows.shape}; semco needs finite numbers, one row for each of "
            f"the {num_classes} classes"
        )
    return torch.from_numpy(rows)


def group_classes(embeddings: Tensor) -> Tensor:  # (C, d) -> (C,) int64
    """Cluster the classes by cosine distance; with five or fewer clusters, do not group."""
    from sklearn.cluster import DBSCAN

    width = embeddings.shape[1]
    reach = 0.15 if width < 100 else 0.2 if width < 256 else 0.28
    group = DBSCAN(eps=reach, min_samples=1, metric="cosine").fit(embeddings.numpy()).labels_
    if group.max() + 1 <= 5:
        group = np.arange(len(embeddings))
    return torch.from_numpy(np.asarray(group, dtype=np.int64))


@dataclass(frozen=True, kw_only=True)
class SemCo(FixMatch):
    """FixMatch with a second head that predicts the embedding of the class name."""

    about: ClassVar[About] = About("SemCo", 2021, "class name embeddings teach the classifier")
    ratio: ClassVar[int] = 3

    embeddings: str = ""  # file of the class embeddings
    meaning: Amount = 3.0  # weight of the embedding losses
    group_threshold: Cosine = 0.7  # smallest mean cosine with a group

    @property
    def missing(self) -> str:
        return "" if self.embeddings else "embeddings"

    def extras(self, task: Task) -> Sequence[nn.Module]:
        embeddings = read_embeddings(self.embeddings, task.num_classes)
        return (SemanticLoss(embeddings, group_classes(embeddings), self),)

    def build(self, task: Task) -> SemCoLoss:
        plain = super().build(task)
        semantic = plain.extras[0]
        assert isinstance(semantic, SemanticLoss)
        width = semantic.embeddings.shape[1]
        return SemCoLoss(plain, perceptron(task.features, HIDDEN, width))
