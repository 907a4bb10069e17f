"""UPS (Rizve et al., ICLR 2021), one round of the paper: learn what the last round chose.

A round trains a new network on the labels, on the pseudo-labels that the last network gave with
low variance, and on the classes that it ruled out; `fullmatch rounds` runs all rounds. The first
round has no choice to learn from and uses the labels only.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from fullmatch.algorithms.passes import run_jointly
from fullmatch.algorithms.sampling import apply_dropout
from fullmatch.algorithms.ups_rounds import PseudoLabelChoice
from fullmatch.config.limits import ShareBelowOne
from fullmatch.core import About, Algorithm, Batch, Network, Objective, Spec, Task, Views, ratio
from fullmatch.errors import UserError
from fullmatch.losses import cross_entropy, negative_learning


class UPSRound(Algorithm):
    """Cross-entropy over labels and pseudo-labels together, plus the loss on negatives."""

    label: Tensor  # (N,)
    positive: Tensor  # (N,) bool
    negative: Tensor  # (N, C) bool

    def __init__(self, choice: PseudoLabelChoice, spec: "UPSOffline") -> None:
        super().__init__()
        self.views, self.dropout = spec.views, spec.dropout
        for name, tensor in choice._asdict().items():
            self.register_buffer(name, tensor)

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        labeled, unlabeled = run_jointly(student, [batch.labeled[0], batch.unlabeled[0]])
        index = batch.unlabeled_index
        chosen = self.positive[index].float()
        labeled_features, unlabeled_features = apply_dropout(
            self.dropout, labeled.features, unlabeled.features
        )
        logits = student.classify(unlabeled_features)
        # The mean over labels and pseudo-labels, as if they were one set.
        num_labels, num_pseudo_labels = len(batch.labels), chosen.sum()
        supervised = cross_entropy(student.classify(labeled_features), batch.labels)
        positive = cross_entropy(logits, self.label[index], chosen) * len(chosen)
        positive = (supervised * num_labels + positive) / (num_labels + num_pseudo_labels)
        negative = negative_learning(logits, self.negative[index])
        known = chosen * (batch.hidden_labels >= 0)
        correct = known * (self.label[index] == batch.hidden_labels)
        return Objective(
            positive + negative,
            {
                "supervised": supervised,
                "unlikely_negative": negative,
                "selected": chosen.mean(),
                "pseudo_label_accuracy": ratio(correct.sum(), known.sum()),
            },
        )


@dataclass(frozen=True, kw_only=True)
class UPSOffline(Spec):
    """One round; `ups_rounds` chooses what the next round learns from."""

    about: ClassVar[About] = About(
        "UPS", 2021, "rounds: certain labels train the next network", "the last round's choice"
    )
    views: ClassVar[Views] = Views(unlabeled=("strong",))
    ratio: ClassVar[int] = 3

    choice: str = ""  # file written by the round before; empty in the first round
    dropout: ShareBelowOne = 0.3

    @property
    def selects(self) -> bool:
        """The first round has no pseudo-labels to learn from."""
        return bool(self.choice)

    def build(self, task: Task) -> UPSRound:
        shape = (task.num_unlabeled, task.num_classes)
        return UPSRound(self.load_choice(shape) if self.choice else empty_choice(shape), self)

    def load_choice(self, shape: tuple[int, int]) -> PseudoLabelChoice:
        try:
            choice = PseudoLabelChoice(**load_file(Path(self.choice)))
        except (OSError, SafetensorError, TypeError):
            raise UserError(
                f"algorithm.choice: {self.choice} is missing or was not written by a round; "
                "run the rounds with: fullmatch rounds"
            ) from None
        if choice.negative.shape != shape:
            raise UserError(
                f"algorithm.choice: {self.choice} is for {tuple(choice.negative.shape)} images and "
                f"classes, this data has {shape}; run the rounds on this data"
            )
        return choice


def empty_choice(shape: tuple[int, int]) -> PseudoLabelChoice:
    images, classes = shape
    none = torch.zeros(images, dtype=torch.bool)
    return PseudoLabelChoice(
        torch.zeros(images, dtype=torch.int64), none, none[:, None].repeat(1, classes)
    )
