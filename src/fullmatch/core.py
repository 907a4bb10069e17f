"""Shared types: a task, its batches, networks, algorithms, their specs and objectives."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Task:
    """What an algorithm needs to know to size its memory and heads."""

    num_classes: int
    num_labeled: int
    num_unlabeled: int
    class_prior: tuple[float, ...]  # frequencies of the classes among the labeled images
    image: tuple[int, int, int]  # (channels, height, width) of an augmented view
    features: int  # width of the pooled features
    feature_map: tuple[int, int, int]  # shape of the features before pooling
    # Frequencies of the classes in labeled batches, where images of small classes are repeated;
    # empty: those of `class_prior`.
    batch_prior: tuple[float, ...] = ()


@dataclass(frozen=True)
class Appearance:
    """Statistics of a data set's images, and which weak augmentations keep their class."""

    mean: tuple[float, ...]  # per channel, of pixels in [0, 1]
    std: tuple[float, ...]
    flip: bool = True  # mirrored images keep their class; False for digits and text
    padding: int = 4  # width of the reflected border for random crops, in pixels
    crop: int | None = None  # side of an augmented view; None: the side of the stored image
    # Pictures are stretched to their size, and for prediction to that of a view; else they are cut.
    stretch: bool = False


class Output(NamedTuple):
    """What every network returns."""

    logits: Tensor  # (B, C)
    features: Tensor  # (B, D), pooled


class Network(nn.Module):
    """An image classifier in three stages, so that algorithms can work between them."""

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
    """The augmented views that an algorithm needs of each image."""

    labeled: tuple[str, ...] = ("weak",)
    unlabeled: tuple[str, ...] = ("weak", "strong")


class Batch(NamedTuple):
    """One float tensor per requested view, in the order of `Views`."""

    labeled: tuple[Tensor, ...]
    labels: Tensor  # (L,) int64
    labeled_index: Tensor  # (L,) position of each image among the labeled ones
    unlabeled: tuple[Tensor, ...]
    unlabeled_index: Tensor  # (U,) position of each image among the unlabeled ones
    hidden_labels: Tensor  # (U,) for metrics only, never for a loss; -1 if unknown


class DrawnSets(NamedTuple):
    """The images that batches are drawn from, by position in the data, and how many of each."""

    labeled: Tensor  # (L,) positions
    labels: Tensor  # (L,)
    unlabeled: Tensor  # (U,) positions
    labeled_batch: int
    unlabeled_batch: int


class Objective(NamedTuple):
    """What a step minimizes and what it reports, all on the device.

    A metric is a 0-d tensor, averaged over steps, or a `ratio`, whose two parts are summed
    over steps before they are divided. Every step reports the same names.
    """

    loss: Tensor
    metrics: dict[str, Tensor]


def ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    """A metric that is weighted by its own count, such as an accuracy over selected images."""
    return torch.stack([numerator.detach().float(), denominator.detach().float()])


class Algorithm(nn.Module):
    """Turns a batch into an objective. Its buffers are its memory, its parameters are its heads."""

    views: Views = Views()
    weak_gradient: bool = True  # False leaves weak unlabeled views out of the backward pass
    # True: pseudo-labels are the teacher's, which then uses its running statistics.
    teacher_labels: bool = False
    clips_separately: bool = False  # limit the gradients of the network and of the heads one by one
    predicts_unknown: bool = False  # whether `predict_open_set` is implemented

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        raise NotImplementedError

    def predict(self, network: Network, images: Tensor) -> Tensor:
        """Class probabilities; overridden if a head of the algorithm is the classifier."""
        logits: Tensor = network(images).logits
        return logits.float().softmax(dim=1)

    def predict_open_set(self, network: Network, images: Tensor) -> Tensor:
        """(B, C + 1): probabilities of the classes, then of belonging to none of them."""
        raise NotImplementedError


@runtime_checkable
class DerivedMemory(Protocol):
    """A part of an algorithm that keeps what follows from its buffers, and is not saved."""

    def derive_memory(self) -> None:
        """Compute it again, after the buffers were loaded."""


class About(NamedTuple):
    """What `fullmatch list algorithms` shows of a method."""

    paper: str
    year: int
    idea: str  # in about six words
    memory: str = "none"  # what it keeps between steps


# How a method's thresholds relate to its `threshold` setting: equal to it, scaled down from it
# class by class, or learned, so that the setting is only a bound. Advice for a run depends on it.
Thresholds = Literal["fixed", "per class", "adaptive"]


class FallingLimit(NamedTuple):
    """A limit on the loss of a selected image that falls during training; the metric `rho`."""

    start: int  # step from which it is used
    floor: float
    early: bool  # measured at the start of the warm-up, not at its end


@runtime_checkable
class SpecLike(Protocol):
    """The minimum that a spec needs; a frozen dataclass with these two works without `Spec`."""

    ratio: ClassVar[int]

    def build(self, task: Task) -> Algorithm: ...


class Spec:
    """Base class of specs, the frozen dataclasses that users write, such as `FixMatch()`.

    A spec builds its algorithm once the task is known. All but `ratio` and `build` is optional.
    """

    ratio: ClassVar[int]  # unlabeled images per labeled image in the method's publication
    about: ClassVar[About | None] = None
    recipe: ClassVar[Mapping[str, float]] = {}  # optimizer settings of the publication
    thresholds: ClassVar[Thresholds] = "fixed"
    open_set: ClassVar[bool] = False  # made for unlabeled images of classes without labels

    @property
    def views(self) -> Views | None:
        """For listings only; training uses the views of the built algorithm."""
        return None

    @property
    def selects(self) -> bool:
        """Whether the method is meant to select unlabeled images."""
        return True

    @property
    def missing(self) -> str:
        """What the user still has to supply before `build` works; empty if nothing."""
        return ""

    def selection_threshold(self) -> float | None:
        """The confidence that a prediction needs to be used; None if there is no such limit."""
        return None

    def arrange(self, sets: DrawnSets) -> DrawnSets:
        """The sets of a run; overridden if a method brings labels of its own."""
        return sets

    def falling_limit(self, steps: int) -> FallingLimit | None:
        """The limit on the loss of selected images in a run of so many steps, if there is one."""
        return None

    def build(self, task: Task) -> Algorithm:
        raise NotImplementedError


def as_spec(spec: SpecLike) -> Spec:
    """The spec itself, or, if its class does not inherit from `Spec`, a copy that does."""
    if isinstance(spec, Spec):
        return spec
    cls = type(spec)
    fields = dataclasses.fields(cast(type, cls))
    values = {field.name: getattr(spec, field.name) for field in fields if field.init}
    return cast(Spec, type(cls.__name__, (cls, Spec), {})(**values))
