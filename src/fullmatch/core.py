"""The words everything else shares: a task, its batches, networks, algorithms and objectives."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Task:
    """Facts by which an algorithm may size its memory and heads."""

    num_classes: int
    num_labeled: int
    num_unlabeled: int
    class_prior: tuple[float, ...]  # frequencies of the classes among the labeled images
    image: tuple[int, int, int]  # (channels, height, width) of an augmented view
    features: int  # width of the pooled features
    feature_map: tuple[int, int, int]  # the map before pooling, for heads that want it


@dataclass(frozen=True)
class Appearance:
    """What a data set's pictures look like, and which weak operations leave their class alone."""

    mean: tuple[float, ...]  # per channel, of pixels in [0, 1]
    std: tuple[float, ...]
    flip: bool = True  # mirror images keep their class; never so for digits and text
    padding: int = 4  # pixels of reflected border that a random crop may reach into
    crop: int | None = None  # side of an augmented view; None: that of the stored image


class Output(NamedTuple):
    """What every network returns."""

    logits: Tensor  # (B, C)
    features: Tensor  # (B, D), pooled


class Network(nn.Module):
    """An image classifier in three stages, so that algorithms may step in between them."""

    def feature_map(self, images: Tensor) -> Tensor:  # (B, channels, H, W) -> (B, D, h, w)
        raise NotImplementedError

    def classify(self, features: Tensor) -> Tensor:  # (B, D) -> (B, C)
        raise NotImplementedError

    def pool(self, feature_map: Tensor) -> Tensor:  # (B, D, h, w) -> (B, D)
        return feature_map.mean(dim=(2, 3))

    def forward(self, images: Tensor) -> Output:
        features = self.pool(self.feature_map(images))
        return Output(self.classify(features), features)


class Views(NamedTuple):
    """The augmented views an algorithm asks for; the data never asks who is asking."""

    labeled: tuple[str, ...] = ("weak",)
    unlabeled: tuple[str, ...] = ("weak", "strong")


class Batch(NamedTuple):
    """One float tensor per requested view, in the order of `Views`."""

    labeled: tuple[Tensor, ...]
    labels: Tensor  # (L,) int64
    labeled_index: Tensor  # (L,) position of each image among the labeled ones
    unlabeled: tuple[Tensor, ...]
    unlabeled_index: Tensor  # (U,) position of each image among the unlabeled ones
    hidden_labels: Tensor  # (U,) for metrics alone, never for a loss; -1 where nobody knows


class Objective(NamedTuple):
    """What a step minimises, and what it reports; nothing here leaves the device.

    A metric is a 0-d tensor, averaged over steps, or a `ratio`, whose two parts are summed
    over steps before they are divided. Every step reports the same names.
    """

    loss: Tensor
    metrics: dict[str, Tensor]


def ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """A metric that is averaged by its own count, such as an accuracy over selected images."""
    return torch.stack([numerator.detach().float(), denominator.detach().float()])


class Algorithm(nn.Module):
    """Turns a batch into an objective. Its buffers are its memory, its parameters are its heads."""

    views: Views = Views()
    weak_gradient: bool = True  # False keeps weak unlabeled views out of the backward pass

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        raise NotImplementedError

    def predict(self, network: Network, images: Tensor) -> Tensor:
        """Class probabilities; overridden where a head of the algorithm is the classifier."""
        logits: Tensor = network(images).logits
        return logits.float().softmax(dim=1)


@runtime_checkable
class Spec(Protocol):
    """A frozen dataclass that a user writes; it builds the algorithm once the task is known.

    This is all that it must have. `about` and `views` beside it are shown by the listing of
    algorithms; which views a step makes is what the built algorithm says.
    """

    ratio: ClassVar[int]  # unlabeled images per labeled one that the method was published with

    def build(self, task: Task) -> Algorithm: ...
