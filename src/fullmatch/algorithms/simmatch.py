"""SimMatch (Zheng et al., CVPR 2022): both views resemble the same labeled images.

Similarities to the labeled images smooth the label, and the label corrects the similarities. As
USB has it on small data (no second teacher, a bank that moves), except that USB normalises the
bank over the wrong axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.about import About
from fullmatch.algorithms.alignment import RecentMean, evened
from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.heads import GivenLabeler, Headed, Projection
from fullmatch.algorithms.pseudo_labeling import Passes, PseudoLabeling, Step
from fullmatch.config.limits import Amount, Count, Positive, Share
from fullmatch.core import Batch, Network, Objective, Task
from fullmatch.losses import cross_entropy, inner_products


class LabeledBank(nn.Module):
    """The embedding and the label of every labeled image."""

    rows: Tensor  # (K, width) unit vectors
    labels: Tensor  # (K,) -1 until the image has been seen

    def __init__(self, images: int, width: int, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("rows", F.normalize(torch.randn(images, width), dim=1))
        self.register_buffer("labels", torch.full((images,), -1))

    @torch.no_grad()
    def write(self, index: Tensor, rows: Tensor, labels: Tensor) -> None:
        """Move the rows at `index`; of an image that stands there twice the last one counts."""
        index, rows, labels = map(distributed.gather, (index, rows, labels))
        order = torch.arange(len(index), device=index.device)
        last = torch.zeros_like(self.labels).scatter_reduce_(0, index, order, "amax")[index]
        moved = self.rows[index].lerp(rows[last], 1 - self.momentum)
        self.rows[index] = F.normalize(moved, dim=1)
        self.labels[index] = labels[last]

    def complete(self) -> Tensor:  # () bool
        return (self.labels >= 0).all()


class InstanceSimilarity(nn.Module):
    """Cross-entropy of the strong view's similarities with the weak view's corrected ones."""

    def __init__(self, coefficient: float) -> None:
        super().__init__()
        self.coefficient = coefficient

    def forward(self, step: Step) -> Objective:
        _, corrected, similarity, complete = step.passes.heads
        loss = complete * cross_entropy(similarity, corrected)
        return Objective(self.coefficient * loss, {"instances": loss})


class SimMatchLoss(Headed):
    """`heads`: smoothed labels, corrected and strong similarities, 1 once the bank is whole."""

    def __init__(self, plain: PseudoLabeling, task: Task, spec: "SimMatch") -> None:
        super().__init__(plain, Projection(task.features, spec.width))
        self.spec, self.num_classes = spec, task.num_classes
        self.recent = RecentMean(task.num_classes, spec.alignment)
        self.bank = LabeledBank(task.num_labeled, spec.width, spec.momentum)

    def passes(self, student: Network, batch: Batch) -> Passes:
        passes = super().passes(student, batch)
        labeled, weak, strong = passes.heads
        # A copy, since the bank moves before the backward pass reads it.
        rows = self.bank.rows.clone()
        similarity = inner_products(strong, rows) / self.spec.temperature
        with torch.no_grad():
            complete = self.bank.complete()
            labels = self.bank.labels.clamp(min=0)
            probs = passes.weak.logits.float().softmax(dim=1)
            probs = evened(probs, self.recent(probs))
            near = (inner_products(weak, rows) / self.spec.temperature).softmax(dim=1)  # (U, K)
            corrected = near * probs[:, labels]
            corrected = corrected / corrected.sum(dim=1, keepdim=True).clamp(min=1e-12)
            votes = torch.zeros_like(probs).index_add_(1, labels, near)
            blend = probs.lerp(votes, 1 - self.spec.smoothing)
            smoothed = torch.where(complete, blend, probs)
            self.bank.write(batch.labeled_index, labeled.detach(), batch.labels)
        return passes._replace(heads=(smoothed, corrected, similarity, complete.float()))


@dataclass(frozen=True, kw_only=True)
class SimMatch(FixMatch):
    """Smoothing and the instance loss begin once every labeled image has been seen."""

    about: ClassVar[About] = About(
        "SimMatch", 2022, "both views resemble the same labels", "an embedding a labeled image"
    )

    instances: Amount = 1.0  # weight of the instance loss
    temperature: Positive = 0.1
    smoothing: Share = 0.9  # share of an image's own prediction in its label
    alignment: Count = 32  # batches whose mean prediction is made even
    momentum: Share = 0.7  # of the bank; 0 overwrites, as the authors do
    width: Count = 128  # of the embedding

    def labeler(self, task: Task) -> nn.Module:
        return GivenLabeler(self.weighting(task))

    def extras(self, task: Task) -> Sequence[nn.Module]:
        return (InstanceSimilarity(self.instances),)

    def build(self, task: Task) -> SimMatchLoss:
        return SimMatchLoss(super().build(task), task, self)
