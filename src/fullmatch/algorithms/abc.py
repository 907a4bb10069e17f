"""ABC (Lee et al., NeurIPS 2021): an auxiliary classifier that sees all classes equally often.

It works on the features that FixMatch learns from all images. Labeled images of frequent classes
are left out of its loss at random, and so are, more and more during training, unlabeled images that
it labels as such. Its predictions are those of the model. Follows USB: hard labels and one strong
view; the authors use soft labels and two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.algorithms.heads import Embeddings, HeadedPseudoLabeling
from fullmatch.algorithms.pseudo_labeling import Passes, Step
from fullmatch.algorithms.sampling import draw_uniform
from fullmatch.config.limits import Amount, Share
from fullmatch.core import About, Batch, Network, Objective, Task, ratio
from fullmatch.losses import cross_entropy


class ABCHeads(NamedTuple):
    """Logits of the auxiliary classifier."""

    logits: Embeddings


class BalancedLosses(nn.Module):
    """Supervised loss and consistency of the auxiliary classifier, on about equal classes."""

    keep_label: Tensor  # (C,) chance that a labeled image of each class is used
    keep_guess: Tensor  # (C,) the same for unlabeled images, at the end of training

    def __init__(self, spec: "ABC", task: Task) -> None:
        super().__init__()
        self.spec = spec
        # Labeled batches may be balanced by repetition, but unlabeled ones are not.
        shown = keep_chances(task.batch_prior or task.class_prior)
        self.register_buffer("keep_label", shown, persistent=False)
        self.register_buffer("keep_guess", keep_chances(task.class_prior), persistent=False)

    def forward(self, step: Step[ABCHeads]) -> Objective:
        logits, labels = step.passes.heads.logits, step.batch.labels
        confidence, guess = logits.weak.float().softmax(dim=1).max(dim=1)
        # Unlabeled images are balanced gradually: all are kept at first.
        keep_guess = 1 - step.progress * (1 - self.keep_guess)
        chances = torch.cat([self.keep_label[labels], keep_guess[guess]])
        sizes = [(len(labels),), (len(guess),)]
        kept = (torch.cat(draw_uniform(sizes, chances.device)) < chances).float()
        kept_labels, kept_guesses = kept[: len(labels)], kept[len(labels) :]
        selected = kept_guesses * (confidence >= self.spec.balanced_threshold)
        supervised = cross_entropy(logits.labeled, labels, kept_labels)
        consistency = cross_entropy(logits.strong[0], guess, selected)
        metrics = {
            "balanced_supervised": supervised,
            "balanced_consistency": consistency,
            "balanced_selected": selected.mean(),
            "balanced_label_accuracy": label_accuracy(guess, selected, step.batch.hidden_labels),
        }
        return Objective(self.spec.balanced * (supervised + consistency), metrics)


def keep_chances(prior: Sequence[float]) -> Tensor:  # (C,)
    """Chances with which all classes are kept equally often: 1 for the rarest class."""
    frequencies = torch.tensor(prior)
    return (frequencies[frequencies > 0].min() / frequencies).clamp(max=1.0)


def label_accuracy(guess: Tensor, selected: Tensor, hidden_labels: Tensor) -> Tensor:
    """Share of the selected labels that are right, where the truth is known."""
    used = selected * (hidden_labels >= 0)
    return ratio((used * (guess == hidden_labels)).sum(), used.sum())


class ABCLoss(HeadedPseudoLabeling):
    """FixMatch's module with the auxiliary classifier, which predicts in its place."""

    def passes(
        self, student: Network, batch: Batch, teacher: Network | None = None
    ) -> Passes[ABCHeads]:
        passes = super().passes(student, batch, teacher)
        return passes._replace(heads=ABCHeads(self.embed(passes)))

    def predict(self, network: Network, images: Tensor) -> Tensor:
        logits: Tensor = self.head(network(images).features)
        return logits.float().softmax(dim=1)


@dataclass(frozen=True, kw_only=True)
class ABC(FixMatch):
    """`threshold` is that of FixMatch's own labels, `balanced_threshold` that of the classifier."""

    about: ClassVar[About] = About("ABC", 2021, "a second classifier on balanced classes")

    balanced: Amount = 1.0  # weight of the auxiliary classifier's losses
    balanced_threshold: Share = 0.95

    def extras(self, task: Task) -> Sequence[nn.Module]:
        return (BalancedLosses(self, task),)

    def build(self, task: Task) -> ABCLoss:
        return ABCLoss(super().build(task), nn.Linear(task.features, task.num_classes))
