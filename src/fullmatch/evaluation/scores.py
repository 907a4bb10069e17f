"""How good a network is on labeled images: accuracy, calibration, and what it confuses."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

import torch
from torch import Tensor

from fullmatch.data.stores.image_store import ImageStore
from fullmatch.evaluation.intervals import wilson_interval
from fullmatch.storage.result import FinalScores, Scores

BINS = 15  # of confidence, for the expected calibration error
WINDOW = 20  # evaluations in the median


def predict_probabilities(
    predict: Callable[[Tensor], Tensor],
    images: ImageStore,
    *,
    batch: int,
    device: torch.device,
) -> Tensor:
    """(N, C) class probabilities of every image, in order."""
    return predict_together({"": predict}, images, batch=batch, device=device)[""]


@torch.no_grad()
def predict_together(
    predictors: Mapping[str, Callable[[Tensor], Tensor]],
    images: ImageStore,
    *,
    batch: int,
    device: torch.device,
    positions: Tensor | None = None,
) -> dict[str, Tensor]:
    """Probabilities by each predictor; every image is read, and decoded, only once.

    `positions` are those of some of the images.
    """
    positions = torch.arange(len(images), device=device) if positions is None else positions
    parts: dict[str, list[Tensor]] = {name: [] for name in predictors}
    for at in range(0, len(positions), batch):
        read = images.read(positions[at : at + batch]).to(device)
        for name, predict in predictors.items():
            parts[name].append(predict(read))
    return {name: torch.cat(each) for name, each in parts.items()}


def compute_scores(probs: Tensor, labels: Tensor) -> Scores:
    """Scores of predictions (N, C) against labels (N,)."""
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


def summarize_scores(scores: Scores) -> dict[str, float]:
    """The numbers worth a line of the log."""
    top5 = {} if scores.top5 is None else {"top5": scores.top5}
    balanced = scores.balanced_accuracy if scores.uneven else None
    more = {} if balanced is None else {"balanced_accuracy": balanced}
    return {"top1": scores.top1, **top5, "ece": scores.ece, **more}


def finalize_scores(scores: Scores, curve: Sequence[float] = ()) -> FinalScores:
    """Scores at the end; `curve` has the test accuracies during training, for benchmarks."""
    return FinalScores(
        **asdict(scores),
        interval=wilson_interval(scores.top1, scores.images),
        median_last_20=statistics.median(curve[-WINDOW:]) if curve else None,
        best_chosen_on_test=max(curve) if curve else None,
    )
