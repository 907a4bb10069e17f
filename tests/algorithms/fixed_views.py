"""Batches whose images are logits, so that losses can be checked by hand."""

import torch
from torch import Tensor, nn

from fullmatch.core import Algorithm, Batch, Network, Objective, Task


class Echo(Network):
    """Returns the image as logits, plus a parameter that receives gradient."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(num_classes, dtype=torch.float64))

    def feature_map(self, images: Tensor) -> Tensor:
        return images

    def classify(self, features: Tensor) -> Tensor:
        return features + self.shift


def echo_task(num_classes: int, num_unlabeled: int = 16) -> Task:
    shape = (num_classes, 1, 1)
    prior = (1 / num_classes,) * num_classes
    return Task(num_classes, 4, num_unlabeled, prior, shape, num_classes, shape)


def images(probs: list[list[float]]) -> Tensor:
    """Images on which `Echo` predicts these probabilities."""
    return torch.tensor(probs, dtype=torch.float64).log()[:, :, None, None]


def batch(
    weak: list[list[float]],
    strong: list[list[float]],
    *,
    index: list[int] | None = None,
    hidden: list[int] | None = None,
) -> Batch:
    """One labeled image of class 0 with probability 0.8, and these unlabeled views."""
    classes, count = len(weak[0]), len(weak)
    labeled = [[0.8] + [0.2 / (classes - 1)] * (classes - 1)]
    return Batch(
        (images(labeled),),
        torch.tensor([0]),
        torch.tensor([0]),
        (images(weak), images(strong)),
        torch.tensor(index or list(range(count))),
        torch.tensor(hidden or [-1] * count),
    )


def objective(algorithm: Algorithm, views: Batch, progress: float = 0.5) -> Objective:
    network = Echo(views.labeled[0].shape[1])
    return algorithm(network, network, views, torch.tensor(progress))
