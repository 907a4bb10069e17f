"""UPS (Rizve et al., ICLR 2021), one round of the paper: learn what the last round chose.

A round trains a new network on the labels and on the pseudo-labels that the last network gave with
low variance, drawn as one set, and on images of which it only ruled out classes. Other images are
not used. The first round has no choice to learn from and uses the labels only. `fullmatch rounds`
runs all rounds.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from fullmatch import distributed
from fullmatch.algorithms.passes import run_jointly
from fullmatch.algorithms.sampling import apply_dropout
from fullmatch.algorithms.ups_rounds import PseudoLabelChoice
from fullmatch.config.limits import Natural, ShareBelowOne
from fullmatch.core import (
    About,
    Algorithm,
    Batch,
    DrawnSets,
    Network,
    Objective,
    Spec,
    Task,
    Views,
)
from fullmatch.errors import UserError
from fullmatch.losses import cross_entropy, negative_learning


class UPSRound(Algorithm):
    """Cross-entropy of labels and pseudo-labels, plus the loss on ruled out classes."""

    negative: Tensor  # (U, C) bool, of the images that have negatives
    selected: Tensor  # () share of the unlabeled images that have a pseudo-label

    def __init__(self, choice: PseudoLabelChoice, spec: "UPSOffline") -> None:
        super().__init__()
        self.views, self.dropout = spec.views, spec.dropout
        self.register_buffer("negative", choice.negative[choice.has_negatives])
        self.register_buffer("selected", choice.positive.float().mean(), persistent=False)

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        # Without negatives, as in the first round, the other images do not take part.
        others = batch.unlabeled[:1] if len(self.negative) else ()
        outputs = run_jointly(student, [batch.labeled[0], *others])
        features = apply_dropout(self.dropout, *(output.features for output in outputs))
        labeled, *ruled_out = (student.classify(rows) for rows in features)
        supervised = cross_entropy(labeled, batch.labels)
        negative = torch.zeros_like(supervised)
        for logits in ruled_out:
            unlikely = self.negative[batch.unlabeled_index]
            negative = negative_learning(logits, unlikely, distributed.mean)
        return Objective(
            supervised + negative,
            {
                "supervised": supervised,
                "unlikely_negative": negative,
                "selected": self.selected,
            },
        )


@dataclass(frozen=True, kw_only=True)
class UPSOffline(Spec):
    """One round; `ups_rounds` chooses what the next round learns from.

    The authors balance the first 6 rounds on CIFAR-10 and none on CIFAR-100.
    """

    about: ClassVar[About] = About(
        "UPS", 2021, "rounds: certain labels train the next network", "the last round's choice"
    )
    views: ClassVar[Views] = Views(labeled=("strong",), unlabeled=("strong",))
    ratio: ClassVar[int] = 1

    choice: str = ""  # file written by the round before; empty in the first round
    dropout: ShareBelowOne = 0.3
    balanced_rounds: Natural = 6  # rounds that pass on equally many labels of every class

    @property
    def selects(self) -> bool:
        """The first round has no pseudo-labels to learn from."""
        return bool(self.choice)

    def arrange(self, sets: DrawnSets) -> DrawnSets:
        """Pseudo-labeled images join the labeled ones; of the others, those with negatives stay.

        The images of a step are shared in proportion to both sets, where the first one counts as at
        least as large as the second.
        """
        if not self.choice:
            return sets
        choice = self.read_choice()
        labeled = torch.cat([sets.labeled, sets.unlabeled[choice.positive]])
        labels = torch.cat([sets.labels, choice.label[choice.positive]])
        total, others = sets.labeled_batch + sets.unlabeled_batch, int(choice.has_negatives.sum())
        if not others:
            return sets._replace(labeled=labeled, labels=labels, labeled_batch=total)
        processes = distributed.world_size()  # share the images of a step evenly
        share = total * others // (max(len(labeled), others) + others)
        share = max(processes, share - share % processes)
        return DrawnSets(
            labeled, labels, sets.unlabeled[choice.has_negatives], total - share, share
        )

    def build(self, task: Task) -> UPSRound:
        shape = (task.num_unlabeled, task.num_classes)
        if not self.choice:
            return UPSRound(empty_choice(shape), self)
        choice = self.read_choice()
        if choice.negative.shape != shape:
            raise UserError(
                f"algorithm.choice: {self.choice} is for {tuple(choice.negative.shape)} images and "
                f"classes, this data has {shape}; run the rounds on this data"
            )
        return UPSRound(choice, self)

    def read_choice(self) -> PseudoLabelChoice:
        try:
            return PseudoLabelChoice(**load_file(Path(self.choice)))
        except (OSError, SafetensorError, TypeError):
            raise UserError(
                f"algorithm.choice: {self.choice} is missing or was not written by a round; "
                "run the rounds with: fullmatch rounds"
            ) from None


def empty_choice(shape: tuple[int, int]) -> PseudoLabelChoice:
    images, classes = shape
    none = torch.zeros(images, dtype=torch.bool)
    return PseudoLabelChoice(
        torch.zeros(images, dtype=torch.int64), none, none[:, None].repeat(1, classes)
    )
