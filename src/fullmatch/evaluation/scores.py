"""How good a network is on labeled images: accuracy, calibration, and what it confuses."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from fullmatch.data.stores.base import ImageStore

BINS = 15  # of confidence, for the expected calibration error


@dataclass(frozen=True)
class Scores:
    """All fractions in [0, 1]."""

    top1: float
    top5: float | None  # None with five classes or fewer
    ece: float  # expected calibration error
    per_class: tuple[float | None, ...]  # accuracy of each class; None without test images
    confusion: tuple[tuple[int, ...], ...]  # rows are true classes, columns predicted ones

    def summary(self) -> dict[str, float]:
        """The numbers worth a line of the log."""
        top5 = {} if self.top5 is None else {"top5": self.top5}
        return {"top1": self.top1, **top5, "ece": self.ece}

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@torch.no_grad()
def probabilities(
    predict: Callable[[Tensor], Tensor], images: ImageStore, *, batch: int, device: torch.device
) -> Tensor:
    """(N, C) class probabilities of every image, in order."""
    everything = torch.arange(len(images), device=device)
    starts = range(0, len(images), batch)
    return torch.cat(
        [predict(images.read(everything[at : at + batch]).to(device)) for at in starts]
    )


def scores(probs: Tensor, labels: Tensor) -> Scores:
    """Scores of predictions against the truth."""
    probs, labels = probs.double().cpu(), labels.cpu()
    count, classes = probs.shape
    confidence, predicted = probs.max(dim=1)
    right = predicted == labels
    confusion = torch.zeros(classes, classes, dtype=torch.int64)
    confusion.view(-1).index_add_(0, labels * classes + predicted, torch.ones_like(labels))
    members = confusion.sum(dim=1)
    truth = probs.gather(1, labels[:, None])
    top5 = ((probs > truth).sum(dim=1) < 5).double().mean().item() if classes > 5 else None
    bins = (confidence * BINS).nan_to_num().long().clamp(max=BINS - 1)
    gap = torch.zeros(BINS, dtype=torch.float64).index_add_(0, bins, confidence - right.double())
    return Scores(
        top1=right.double().mean().item(),
        top5=top5,
        ece=(gap.abs().sum() / count).item(),
        per_class=tuple(
            (hits / total if total else None)
            for hits, total in zip(confusion.diagonal().tolist(), members.tolist(), strict=True)
        ),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )
