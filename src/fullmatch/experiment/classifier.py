"""A trained classifier: network, algorithm and preprocessing, in one file that runs no code."""

import os
from collections.abc import Callable, Collection
from pathlib import Path

import torch
from torch import Tensor, nn

from fullmatch.augment.views import Augmenter
from fullmatch.config import SettingsTable, from_table
from fullmatch.core import Algorithm, Network, Task
from fullmatch.errors import UserError
from fullmatch.experiment.model_file import (
    FrozenDescription,
    ModelDescription,
    ModelFile,
    other_version,
    prefixed,
)
from fullmatch.models import Backbone, WideResNet, build_network
from fullmatch.models.frozen import Embedding, FrozenBody, FrozenNetwork
from fullmatch.models.landmarks import LandmarkBody
from fullmatch.plugins import refuse_unnamed
from fullmatch.training.randomness import preserve_rng

# What a description that another version wrote, or a stranger, leads to.
BUILDING_ERRORS = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    UserError,
)


class Classifier(nn.Module):
    """Stored images in, class probabilities out."""

    def __init__(
        self,
        network: Network,
        algorithm: Algorithm,
        augment: Augmenter,
        *,
        classes: tuple[str, ...],
        image: tuple[int, int, int],
    ) -> None:
        super().__init__()
        self.network, self.algorithm, self.augment = network, algorithm, augment
        self.classes = classes
        self.image = image  # (channels, height, width) of a stored image

    @property
    def picture(self) -> tuple[int, int, int]:
        """(channels, height, width) that a picture is brought to for prediction."""
        appearance = self.augment.appearance
        if not appearance.stretch or appearance.crop is None:
            return self.image
        return (self.image[0], appearance.crop, appearance.crop)

    @property
    def takes_features(self) -> bool:
        """Whether it takes rows of features that the user has computed, instead of images."""
        return isinstance(self.network, FrozenNetwork) and isinstance(
            self.network.body, LandmarkBody
        )

    def forward(self, images: Tensor) -> Tensor:
        """(B, channels, H, W) uint8, or features (B, 1, 1, D) -> (B, C) probabilities."""
        if self.takes_features:
            return self.algorithm.predict(self.network, images)
        view = self.augment(images, "plain").contiguous(memory_format=torch.channels_last)
        return self.algorithm.predict(self.network, view)

    def predict_open_set(self, images: Tensor) -> Tensor:
        """The same with one class more, "unknown", if the algorithm predicts it."""
        view = images if images.is_floating_point() else self.augment(images, "plain")
        return self.algorithm.predict_open_set(self.network, view)

    def save(self, path: Path, *, model: str, spec: SettingsTable, task: Task) -> None:
        """Write the weights and all that is needed to build the classifier again."""
        network, tensors = self.network, prefixed("network", self.network)
        own_head = type(self.algorithm).predict is not Algorithm.predict
        own_head = own_head or self.algorithm.predicts_unknown
        if own_head:  # it is a classifier, so it is saved too
            tensors |= prefixed("algorithm", self.algorithm)
        description = ModelDescription(
            model=model,
            image=self.image,
            classes=self.classes,
            appearance=self.augment.appearance,
            frozen=FrozenDescription.of(network) if isinstance(network, FrozenNetwork) else None,
            torchssl_blocks=isinstance(network, WideResNet) and network.torchssl_blocks,
            algorithm=spec if own_head else None,
            task=task if own_head else None,
        )
        ModelFile(description, tensors).write(path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], named: Callable[[], Collection[str]] = tuple
    ) -> "Classifier":
        """Read what `save` wrote, ready for prediction on the CPU.

        `named` returns `module:name` of code that may be imported, such as those in a config.
        """
        path = Path(path)
        file = ModelFile.read(path)
        refuse_unnamed(file.description.references, named, path)
        try:
            classifier = build_classifier(cls, file.description)
        except BUILDING_ERRORS as error:
            raise other_version(path, error) from None
        if classifier.state_dict().keys() != file.tensors.keys():
            raise UserError(
                f"{path} does not fit the model {file.description.model!r} it names; restore it, "
                "or train it again"
            )
        try:
            classifier.load_state_dict(file.tensors)
        except RuntimeError as error:
            raise other_version(path, error) from None
        return classifier.to(memory_format=torch.channels_last).eval()


def build_classifier(cls: type[Classifier], description: ModelDescription) -> Classifier:
    """A classifier as a model's file describes it, before its weights are filled in."""
    with preserve_rng(torch.device("cpu")):  # the first weights are drawn, then replaced
        network = build_saved_network(description)
        algorithm = build_saved_algorithm(description)
    return cls(
        network,
        algorithm,
        Augmenter(description.appearance),
        classes=description.classes,
        image=description.image,
    )


def build_saved_algorithm(description: ModelDescription) -> Algorithm:
    """The algorithm whose head is the classifier, or a plain one if the network's own head is."""
    from fullmatch.algorithms import algorithm as spec_of

    if description.algorithm is None or description.task is None:
        return Algorithm()
    fields = dict(description.algorithm)
    spec = spec_of(fields.pop("name"))
    built: Algorithm = from_table(type(spec), fields, "algorithm.").build(description.task)
    return built


def build_saved_network(description: ModelDescription) -> Network:
    """A network as it was saved, before its weights are read."""
    frozen, view, num_classes = description.frozen, description.view, len(description.classes)
    if frozen is not None and frozen.landmarks is not None:
        return freeze(LandmarkBody(view[2], frozen.landmarks), frozen, num_classes)
    network = build_network(
        description.model,
        num_classes,
        view,
        torchssl_blocks=description.torchssl_blocks,
        fit=frozen is None,  # a frozen body keeps its size, and pictures are resized to it
    )
    if frozen is None:
        return network
    if not isinstance(network, Backbone):
        raise UserError(f"model {description.model!r} has no body to freeze")
    classifier, named = None, None
    if frozen.classifier is not None:
        classifier = nn.Linear(network.head.in_features, frozen.classifier)
        named = torch.zeros(frozen.classifier, frozen.named) if frozen.named else None
    return freeze(FrozenBody(network.body, classifier, frozen.sizes, named), frozen, num_classes)


def freeze(body: FrozenBody, frozen: FrozenDescription, num_classes: int) -> FrozenNetwork:
    return FrozenNetwork(body, Embedding(frozen.widths, frozen.dimensions), num_classes)
