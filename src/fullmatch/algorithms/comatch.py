"""CoMatch (Li et al., ICCV 2021): labels and embeddings teach each other which images are alike.

A bank of embeddings smooths the labels; a graph of the labels trains the embeddings. Where sources
differ: the head is USB's (ReLU); smoothing starts once the bank is full, as in the authors' code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.alignment import RecentMean, align_to_uniform
from fullmatch.algorithms.banks import Bank
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.heads import HeadedPseudoLabeling, PrecomputedLabeler, Projection
from fullmatch.algorithms.pseudo_labeling import Passes, PseudoLabeling, Step
from fullmatch.config.limits import Amount, Count, Positive, Share
from fullmatch.core import About, Batch, Network, Objective, Task, Views
from fullmatch.losses import cross_entropy, inner_products, label_graph


class CoMatchHeads(NamedTuple):
    """Smoothed labels, and the embeddings of both strong views."""

    probs: Tensor  # (U, C)
    first: Tensor  # (U, width)
    second: Tensor  # (U, width)


class GraphContrast(nn.Module):
    """Cross-entropy between the strong views' similarities and the graph of their labels."""

    def __init__(self, spec: "CoMatch") -> None:
        super().__init__()
        self.spec = spec

    def forward(self, step: Step[CoMatchHeads]) -> Objective:
        heads = step.passes.heads
        second = distributed.gather(heads.second)
        similarity = inner_products(heads.first, second) / self.spec.temperature
        graph = label_graph(distributed.gather(heads.probs), self.spec.cut)
        loss = cross_entropy(similarity, distributed.own_rows(graph))
        return Objective(self.spec.contrast * loss, {"contrast": loss})


class CoMatchLoss(HeadedPseudoLabeling):
    """Smooths the labels with the bank of embeddings, and adds each batch to it."""

    def __init__(self, plain: PseudoLabeling, task: Task, spec: "CoMatch") -> None:
        super().__init__(plain, Projection(task.features, spec.width))
        self.spec, self.num_classes = spec, task.num_classes
        self.recent = RecentMean(task.num_classes, spec.alignment)
        self.bank = Bank(spec.bank, spec.width + task.num_classes)

    def passes(
        self, student: Network, batch: Batch, teacher: Network | None = None
    ) -> Passes[CoMatchHeads]:
        passes = super().passes(student, batch, teacher)
        labeled, weak, (first, second) = self.embed(passes)
        with torch.no_grad():
            probs = passes.weak.logits.float().softmax(dim=1)
            probs = align_to_uniform(probs, self.recent(probs))
            smoothed = self.smooth(probs, weak)
            truth = F.one_hot(batch.labels, self.num_classes)
            parts = (torch.cat([weak, probs], dim=1), torch.cat([labeled, truth], dim=1))
            self.bank.write(torch.cat([distributed.gather(part) for part in parts]))
        return passes._replace(heads=CoMatchHeads(smoothed, first, second))

    def smooth(self, probs: Tensor, weak: Tensor) -> Tensor:
        """Blend with the labels in the bank, weighted by similarity, once the bank is full."""
        keys, votes = torch.split(self.bank.rows, [self.spec.width, self.num_classes], dim=1)
        near = (inner_products(weak, keys) / self.spec.temperature).softmax(dim=1)
        blend = probs.lerp(inner_products(near, votes.T), 1 - self.spec.smoothing)
        return torch.where(self.bank.is_full(), blend, probs)


@dataclass(frozen=True, kw_only=True)
class CoMatch(FixMatch):
    """The bank's 2560 rows hold five batches of 64 labeled and 448 unlabeled images."""

    about: ClassVar[About] = About(
        "CoMatch", 2021, "label graph teaches embeddings, and back", "a bank of embeddings"
    )
    views: ClassVar[Views] = Views(unlabeled=("weak", "strong", "strong"))

    contrast: Amount = 1.0  # weight of the graph loss
    temperature: Positive = 0.2
    cut: Share = 0.8  # weaker links of the graph are removed
    smoothing: Share = 0.9  # share of an image's own prediction in its label
    alignment: Count = 32  # batches whose mean prediction is aligned to uniform
    bank: Count = 2560
    width: Count = 64  # of an embedding

    def labeler(self, task: Task) -> nn.Module:
        return PrecomputedLabeler(self.weighting(task))

    def extras(self, task: Task) -> Sequence[nn.Module]:
        return (GraphContrast(self),)

    def build(self, task: Task) -> CoMatchLoss:
        return CoMatchLoss(super().build(task), task, self)
