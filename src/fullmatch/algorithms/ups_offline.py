"""UPS (Rizve et al., ICLR 2021), one of the paper's rounds: learn what the last round chose.

A round trains a new network on the labels, on the images that the network before it labeled
steadily, and on the classes it ruled out; `fullmatch rounds` runs them one after another. Without a
choice it is the first round: the labels alone.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from fullmatch.algorithms.about import About
from fullmatch.algorithms.passes import joint
from fullmatch.algorithms.sampling import dropped
from fullmatch.algorithms.ups_rounds import Choice
from fullmatch.config.limits import Part
from fullmatch.core import Algorithm, Batch, Network, Objective, Task, Views, ratio
from fullmatch.errors import UserError
from fullmatch.losses import cross_entropy, negative_learning


class UPSRound(Algorithm):
    """Cross-entropy over labels and chosen labels together, and the loss of ruled out classes."""

    label: Tensor  # (N,)
    positive: Tensor  # (N,) bool
    negative: Tensor  # (N, C) bool

    def __init__(self, choice: Choice, spec: "UPSOffline") -> None:
        super().__init__()
        self.views, self.dropout = spec.views, spec.dropout
        for name, tensor in choice._asdict().items():
            self.register_buffer(name, tensor)

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        labeled, unlabeled = joint(student, [batch.labeled[0], batch.unlabeled[0]])
        index = batch.unlabeled_index
        chosen = self.positive[index].float()
        certain, rest = dropped(self.dropout, labeled.features, unlabeled.features)
        logits = student.classify(rest)
        # The mean over all labels, given or chosen, as if they were one set.
        given, taken = len(batch.labels), chosen.sum()
        supervised = cross_entropy(student.classify(certain), batch.labels)
        positive = cross_entropy(logits, self.label[index], chosen) * len(chosen)
        positive = (supervised * given + positive) / (given + taken)
        negative = negative_learning(logits, self.negative[index])
        known = chosen * (batch.hidden_labels >= 0)
        right = known * (self.label[index] == batch.hidden_labels)
        return Objective(
            positive + negative,
            {
                "supervised": supervised,
                "unlikely_negative": negative,
                "selected": chosen.mean(),
                "pseudo_label_accuracy": ratio(right.sum(), known.sum()),
            },
        )


@dataclass(frozen=True, kw_only=True)
class UPSOffline:
    about: ClassVar[About] = About(
        "UPS", 2021, "rounds: steady labels train the next network", "the last round's choice"
    )
    views: ClassVar[Views] = Views(unlabeled=("strong",))
    ratio: ClassVar[int] = 3

    choice: str = ""  # the file a round before wrote; empty: the first round
    dropout: Part = 0.3

    @property
    def selects(self) -> bool:
        """Whether a round before chose something to learn from."""
        return bool(self.choice)

    def build(self, task: Task) -> UPSRound:
        shape = (task.num_unlabeled, task.num_classes)
        return UPSRound(self.chosen(shape) if self.choice else nothing(shape), self)

    def chosen(self, shape: tuple[int, int]) -> Choice:
        try:
            choice = Choice(**load_file(Path(self.choice)))
        except (OSError, SafetensorError, TypeError):
            raise UserError(
                f"algorithm.choice: {self.choice} is missing or no choice of a round; "
                "run the rounds with: fullmatch rounds"
            ) from None
        if choice.negative.shape != shape:
            raise UserError(
                f"algorithm.choice: {self.choice} is of {tuple(choice.negative.shape)} images and "
                f"classes, this data has {shape}; run the rounds on this data"
            )
        return choice


def nothing(shape: tuple[int, int]) -> Choice:
    images, classes = shape
    none = torch.zeros(images, dtype=torch.bool)
    return Choice(torch.zeros(images, dtype=torch.int64), none, none[:, None].repeat(1, classes))
