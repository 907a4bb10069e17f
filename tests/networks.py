"""A small network for tests, with a matching task and random batches."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.core import Batch, Network, Task, Views


class TinyNetwork(Network):
    """Two convolutions and a batch norm, for images of any size."""

    features = 16

    def __init__(self, num_classes: int, channels: int = 1) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.body = nn.Conv2d(8, self.features, 3, stride=2, padding=1)
        self.head = nn.Linear(self.features, num_classes)

    def feature_map(self, images: Tensor) -> Tensor:
        return F.relu(self.body(F.relu(self.norm(self.stem(images)))))

    def classify(self, features: Tensor) -> Tensor:
        return self.head(features)


def tiny_task(
    num_classes: int = 4, *, num_labeled: int = 8, num_unlabeled: int = 32, side: int = 8
) -> Task:
    """The task of one-channel images for a `TinyNetwork`."""
    half = (side + 1) // 2
    prior = (1 / num_classes,) * num_classes
    return Task(
        num_classes,
        num_labeled,
        num_unlabeled,
        prior,
        (1, side, side),
        TinyNetwork.features,
        (TinyNetwork.features, half, half),
    )


def random_batch(task: Task, views: Views, *, labeled: int = 4, unlabeled: int = 6) -> Batch:
    """Noise for every view; no image is in it twice."""
    return Batch(
        tuple(torch.randn(labeled, *task.image) for _ in views.labeled),
        torch.randint(task.num_classes, (labeled,)),
        torch.randperm(task.num_labeled)[:labeled],
        tuple(torch.randn(unlabeled, *task.image) for _ in views.unlabeled),
        torch.randperm(task.num_unlabeled)[:unlabeled],
        torch.randint(-1, task.num_classes, (unlabeled,)),
    )
