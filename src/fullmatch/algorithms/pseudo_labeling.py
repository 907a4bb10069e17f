"""The module of the FixMatch family: label the weak view, learn that label on the strong view."""

from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.algorithms.passes import run_jointly
from fullmatch.core import Algorithm, Batch, Network, Objective, Output, Views, ratio
from fullmatch.losses import cross_entropy

Heads = TypeVar("Heads", covariant=True)  # outputs of a method's own heads; None without heads


class PseudoLabels(NamedTuple):
    """What the weak view says about each unlabeled image, without gradient."""

    probs: Tensor  # (U, C), the probabilities that ranks are taken from
    label: Tensor  # (U,), their argmax
    target: Tensor  # (U,) labels or (U, C) probabilities that the strong view learns
    weight: Tensor  # (U,) in [0, 1]; 0 leaves the image out


class Passes(NamedTuple, Generic[Heads]):
    """The student's outputs for every view of a batch."""

    labeled: Output
    weak: Output
    strong: tuple[Output, ...]
    heads: Heads


class Step(NamedTuple, Generic[Heads]):
    """Everything that an extra loss can use."""

    student: Network
    batch: Batch
    passes: Passes[Heads]
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

    def forward(self, passes: Passes[object], batch: Batch, progress: Tensor) -> PseudoLabels:
        probs = passes.weak.logits.detach().float().softmax(dim=1)
        label = probs.argmax(dim=1)
        return PseudoLabels(probs, label, label, self.weighting(probs, batch.unlabeled_index))


class PseudoLabeling(Algorithm):
    """Supervised loss + consistency with the pseudo-labels + any number of extra losses.

    An extra is a module `(Step) -> Objective` whose loss is already weighted. `views` has no
    default, so that no method forgets the views of its spec.
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

    def passes(self, student: Network, batch: Batch, teacher: Network | None = None) -> Passes[Any]:
        """One joint pass, or, with `weak_gradient` off, a separate pass for the weak view.

        That separate pass is the teacher's, if there is one.
        """
        weak, *strong = batch.unlabeled
        labeler = student if teacher is None else teacher
        if self.weak_gradient and labeler is student:
            labeled, weak_output, *outputs = run_jointly(student, [batch.labeled[0], weak, *strong])
        else:
            with torch.no_grad():
                weak_output = labeler(weak)
            labeled, *outputs = run_jointly(student, [batch.labeled[0], *strong])
        return Passes(labeled, weak_output, tuple(outputs), None)

    def supervised(self, passes: Passes[Any], batch: Batch, progress: Tensor) -> Tensor:
        return cross_entropy(passes.labeled.logits, batch.labels)

    def consistency(self, passes: Passes[Any], pseudo: PseudoLabels) -> Tensor:
        return cross_entropy(passes.strong[0].logits, pseudo.target, pseudo.weight)

    def unlabeled_weight(self, progress: Tensor) -> Tensor | float:
        """Weight of the consistency loss; overridden if it changes during training."""
        return self.coefficient

    def extra_objectives(self, step: Step[Any]) -> list[Objective]:
        """Objectives of the extras; overridden if one of them reads the labeler's memory."""
        return [extra(step) for extra in self.extras]

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        passes = self.passes(student, batch, teacher if self.teacher_labels else None)
        with torch.no_grad():
            pseudo: PseudoLabels = self.labeler(passes, batch, progress)
        supervised = self.supervised(passes, batch, progress)
        consistency = self.consistency(passes, pseudo)
        loss = supervised + self.unlabeled_weight(progress) * consistency
        metrics = {"supervised": supervised, "consistency": consistency}
        step = Step(student, batch, passes, pseudo, progress)
        for objective in self.extra_objectives(step):
            loss = loss + objective.loss
            metrics.update(objective.metrics)
        return Objective(loss, metrics | usage_metrics(pseudo, batch.hidden_labels))


class ExtendedPseudoLabeling(PseudoLabeling):
    """Base class of methods that change the module: takes over the parts of a plain one."""

    def __init__(self, plain: PseudoLabeling) -> None:
        super().__init__(
            plain.labeler, plain.extras, views=plain.views, coefficient=plain.coefficient
        )


@torch.no_grad()
def usage_metrics(pseudo: PseudoLabels, hidden_labels: Tensor) -> dict[str, Tensor]:
    """How many unlabeled images are used, and how many of known labels are right."""
    known = (hidden_labels >= 0).float()
    truth = hidden_labels.clamp(min=0)
    used = pseudo.weight * known
    # Rank of the true class among the weak view's probabilities, starting at 1. Classes with an
    # equal probability, and NaN, rank before it: a constant prediction is never correct.
    rank = (~(pseudo.probs < pseudo.probs.gather(1, truth[:, None]))).sum(dim=1)
    # Share of the most frequent pseudo-label among the used ones: 1 if all images get one class.
    classes = torch.arange(pseudo.probs.shape[1], device=pseudo.label.device)
    members = ((pseudo.label[:, None] == classes) * pseudo.weight[:, None]).sum(dim=0)
    members, count = distributed.total(members), distributed.total(pseudo.weight.sum())
    metrics = {
        "selected": pseudo.weight.mean(),
        "largest_class_share": ratio(members.max(), count),
        "pseudo_label_accuracy": ratio((used * (pseudo.label == truth)).sum(), used.sum()),
    }
    for top in (1, 5, 9):
        if top < pseudo.probs.shape[1]:
            correct = (rank <= top) * known
            metrics[f"unlabeled_top{top}"] = ratio(correct.sum(), known.sum())
    return metrics
