"""SimMatch (Zheng et al., CVPR 2022): both views are similar to the same labeled images.

Similarities to the labeled images smooth the label, and the label corrects the similarities.
Follows USB on small data (no separate teacher, a bank with momentum), except that USB normalizes
the bank over the wrong axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.alignment import RecentMean, align_to_uniform
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.heads import HeadedPseudoLabeling, PrecomputedLabeler, Projection
from fullmatch.algorithms.pseudo_labeling import Passes, PseudoLabeling, Step
from fullmatch.config.limits import Amount, Count, Positive, Share
from fullmatch.core import About, Batch, Network, Objective, Task
from fullmatch.losses import cross_entropy, inner_products


class LabeledBank(nn.Module):
    """The embedding and the label of every labeled image."""

    rows: Tensor  # (K, width) unit vectors
    labels: Tensor  # (K,) -1 until the image was in a batch

    def __init__(self, images: int, width: int, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("rows", F.normalize(torch.randn(images, width), dim=1))
        self.register_buffer("labels", torch.full((images,), -1))

    @torch.no_grad()
    def write(self, index: Tensor, rows: Tensor, labels: Tensor) -> None:
        """Move the rows at `index`; if an image is there twice, the last one counts."""
        index, rows, labels = map(distributed.gather, (index, rows, labels))
        order = torch.arange(len(index), device=index.device)
        last = torch.zeros_like(self.labels).scatter_reduce_(0, index, order, "amax")[index]
        moved = self.rows[index].lerp(rows[last], 1 - self.momentum)
        self.rows[index] = F.normalize(moved, dim=1)
        self.labels[index] = labels[last]

    def complete(self) -> Tensor:  # () bool
        return (self.labels >= 0).all()


class SimMatchHeads(NamedTuple):
    """Smoothed labels, and similarities to the labeled images."""

    probs: Tensor  # (U, C), smoothed
    corrected: Tensor  # (U, K), of the weak view, corrected by its label
    similarity: Tensor  # (U, K), of the strong view, as logits
    complete: Tensor  # (), 1 once the bank has every labeled image


class InstanceSimilarity(nn.Module):
    """Cross-entropy between the strong view's similarities and the weak view's corrected ones."""

    def __init__(self, coefficient: float) -> None:
        super().__init__()
        self.coefficient = coefficient

    def forward(self, step: Step[SimMatchHeads]) -> Objective:
        heads = step.passes.heads
        loss = heads.complete * cross_entropy(heads.similarity, heads.corrected)
        return Objective(self.coefficient * loss, {"instances": loss})


class SimMatchLoss(HeadedPseudoLabeling):
    """Smooths the labels with the bank of labeled images, and updates it with each batch."""

    def __init__(self, plain: PseudoLabeling, task: Task, spec: "SimMatch") -> None:
        super().__init__(plain, Projection(task.features, spec.width))
        self.spec, self.num_classes = spec, task.num_classes
        self.recent = RecentMean(task.num_classes, spec.alignment)
        self.bank = LabeledBank(task.num_labeled, spec.width, spec.momentum)

    def passes(
        self, student: Network, batch: Batch, teacher: Network | None = None
    ) -> Passes[SimMatchHeads]:
        passes = super().passes(student, batch, teacher)
        labeled, weak, (strong,) = self.embed(passes)
        # A copy, since the bank changes before the backward pass reads it.
        rows = self.bank.rows.clone()
        similarity = inner_products(strong, rows) / self.spec.temperature
        with torch.no_grad():
            complete = self.bank.complete()
            labels = self.bank.labels.clamp(min=0)
            probs = passes.weak.logits.float().softmax(dim=1)
            probs = align_to_uniform(probs, self.recent(probs))
            near = (inner_products(weak, rows) / self.spec.temperature).softmax(dim=1)  # (U, K)
            corrected = near * probs[:, labels]
            corrected = corrected / corrected.sum(dim=1, keepdim=True).clamp(min=1e-12)
            votes = torch.zeros_like(probs).index_add_(1, labels, near)
            blend = probs.lerp(votes, 1 - self.spec.smoothing)
            smoothed = torch.where(complete, blend, probs)
            self.bank.write(batch.labeled_index, labeled.detach(), batch.labels)
        return passes._replace(
            heads=SimMatchHeads(smoothed, corrected, similarity, complete.float())
        )


@dataclass(frozen=True, kw_only=True)
class SimMatch(FixMatch):
    """Smoothing and the instance loss start once every labeled image was in a batch."""

    about: ClassVar[About] = About(
        "SimMatch", 2022, "both views resemble the same labels", "one embedding per labeled image"
    )

    instances: Amount = 1.0  # weight of the instance loss
    temperature: Positive = 0.1
    smoothing: Share = 0.9  # share of an image's own prediction in its label
    alignment: Count = 32  # batches whose mean prediction is aligned to uniform
    momentum: Share = 0.7  # of the bank; 0 overwrites its rows, as in the authors' code
    width: Count = 128  # of an embedding

    def labeler(self, task: Task) -> nn.Module:
        return PrecomputedLabeler(self.weighting(task))

    def extras(self, task: Task) -> Sequence[nn.Module]:
        return (InstanceSimilarity(self.instances),)

    def build(self, task: Task) -> SimMatchLoss:
        return SimMatchLoss(super().build(task), task, self)
