"""The FixMatch family's one module: label the weak view, learn it on the strong one."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fullmatch.algorithms.passes import joint
from fullmatch.core import Algorithm, Batch, Network, Objective, Output, Views, ratio
from fullmatch.losses import cross_entropy


class PseudoLabels(NamedTuple):
    """What the weak view says of each unlabeled image; carries no gradient."""

    probs: Tensor  # (U, C), the probabilities that ranks are taken from
    label: Tensor  # (U,), their argmax
    target: Tensor  # (U,) labels or (U, C) probabilities that the strong view learns
    weight: Tensor  # (U,) in [0, 1]; 0 leaves the image out


class Passes(NamedTuple):
    """What the student said of every view of a batch."""

    labeled: Output
    weak: Output
    strong: tuple[Output, ...]
    heads: tuple[Tensor, ...] = ()  # what a method's own heads made of the views, in its own order


class Step(NamedTuple):
    """All that an extra loss may look at."""

    student: Network
    batch: Batch
    passes: Passes
    pseudo: PseudoLabels
    progress: Tensor


class FixedThreshold(nn.Module):
    """Selects the images whose largest probability reaches a threshold."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold

    def forward(self, probs: Tensor, index: Tensor) -> Tensor:
        return (probs.amax(dim=1) >= self.threshold).float()


class Labeler(nn.Module):
    """Hard labels from the weak view's softmax, weighted by a `(probs, index) -> weight`."""

    def __init__(self, weighting: nn.Module) -> None:
        super().__init__()
        self.weighting = weighting

    def forward(self, passes: Passes, batch: Batch, progress: Tensor) -> PseudoLabels:
        probs = passes.weak.logits.detach().float().softmax(dim=1)
        label = probs.argmax(dim=1)
        return PseudoLabels(probs, label, label, self.weighting(probs, batch.unlabeled_index))


class PseudoLabeling(Algorithm):
    """Supervised loss + consistency with the pseudo-labels + any number of extra losses.

    An extra is a module `(Step) -> Objective` whose loss is already weighted. `views` has no
    default, so that no method can forget those of its spec.
    """

    def __init__(
        self,
        labeler: nn.Module,
        extras: Iterable[nn.Module] = (),
        *,
        views: Views,
        coefficient: float = 1.0,
    ) -> None:
        super().__init__()
        self.labeler = labeler
        self.extras = nn.ModuleList(extras)
        self.views, self.coefficient = views, coefficient

    def passes(self, student: Network, batch: Batch) -> Passes:
        """One joint pass, or, with `weak_gradient` off, the weak view in a pass of its own."""
        weak, *strong = batch.unlabeled
        if self.weak_gradient:
            labeled, weak_output, *outputs = joint(student, [batch.labeled[0], weak, *strong])
        else:
            with torch.no_grad():
                weak_output = student(weak)
            labeled, *outputs = joint(student, [batch.labeled[0], *strong])
        return Passes(labeled, weak_output, tuple(outputs))

    def supervised(self, passes: Passes, batch: Batch, progress: Tensor) -> Tensor:
        return cross_entropy(passes.labeled.logits, batch.labels)

    def consistency(self, passes: Passes, pseudo: PseudoLabels) -> Tensor:
        return cross_entropy(passes.strong[0].logits, pseudo.target, pseudo.weight)

    def additions(self, step: Step) -> list[Objective]:
        """What the extras add; overridden where an addition reads the labeler's memory."""
        return [extra(step) for extra in self.extras]

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        passes = self.passes(student, batch)
        with torch.no_grad():
            pseudo: PseudoLabels = self.labeler(passes, batch, progress)
        supervised = self.supervised(passes, batch, progress)
        consistency = self.consistency(passes, pseudo)
        loss = supervised + self.coefficient * consistency
        metrics = {"supervised": supervised, "consistency": consistency}
        step = Step(student, batch, passes, pseudo, progress)
        for objective in self.additions(step):
            loss = loss + objective.loss
            metrics.update(objective.metrics)
        return Objective(loss, metrics | usage(pseudo, batch.hidden_labels))


class Member(PseudoLabeling):
    """A method with a module of its own: it takes over all of a plain one, built before it."""

    def __init__(self, plain: PseudoLabeling) -> None:
        super().__init__(
            plain.labeler, plain.extras, views=plain.views, coefficient=plain.coefficient
        )


@torch.no_grad()
def usage(pseudo: PseudoLabels, hidden: Tensor) -> dict[str, Tensor]:
    """How much of the unlabeled batch is used, and, where hidden labels are known, how rightly."""
    known = (hidden >= 0).float()
    truth = hidden.clamp(min=0)
    used = pseudo.weight * known
    # Place of the true class among the weak view's probabilities, 1 being the first. A class as
    # likely counts before it, and so does NaN: who cannot tell classes apart has found none.
    place = (~(pseudo.probs < pseudo.probs.gather(1, truth[:, None]))).sum(dim=1)
    # Of what is used, the share of the most frequent pseudo-label: 1 when one swallows all others.
    classes = torch.arange(pseudo.probs.shape[1], device=pseudo.label.device)
    members = ((pseudo.label[:, None] == classes) * pseudo.weight[:, None]).sum(dim=0)
    metrics = {
        "selected": pseudo.weight.mean(),
        "largest_class_share": ratio(members.max(), pseudo.weight.sum()),
        "pseudo_label_accuracy": ratio((used * (pseudo.label == truth)).sum(), used.sum()),
    }
    for top in (1, 5, 9):
        if top < pseudo.probs.shape[1]:
            right = (place <= top) * known
            metrics[f"unlabeled_top{top}"] = ratio(right.sum(), known.sum())
    return metrics
