"""A trained classifier: network, algorithm and preprocessing, in one file that runs no code."""

import json
import os
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from fullmatch.augment.views import Augmenter
from fullmatch.config import from_table, to_table
from fullmatch.core import Algorithm, Appearance, Network, Task
from fullmatch.errors import UserError
from fullmatch.files.reading import parse_json, require_regular
from fullmatch.models import Backbone, WideResNet, build_network
from fullmatch.models.frozen import Embedding, FrozenBody, FrozenNetwork
from fullmatch.models.landmarks import LandmarkBody
from fullmatch.plugins import is_reference, refuse_unnamed
from fullmatch.storage.json_files import checked
from fullmatch.storage.tensors import write_tensors
from fullmatch.training.randomness import preserve_rng

LARGEST_SIDE = 100_000  # pixels of a picture, or numbers in a row of features
# What a description that another version wrote, or a stranger, leads to.
DESCRIPTION_ERRORS = (
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

    def save(self, path: Path, *, model: str, spec: dict[str, Any], task: Task) -> None:
        """Write the weights and all that is needed to build the classifier again."""
        about = {
            "model": model,
            "image": self.image,
            "classes": self.classes,
            "appearance": to_table(self.augment.appearance),
        }
        if isinstance(self.network, FrozenNetwork):
            about["frozen"] = describe_frozen(self.network)
        if isinstance(self.network, WideResNet) and self.network.torchssl_blocks:
            about["torchssl_blocks"] = True
        tensors = {f"network.{n}": t for n, t in self.network.state_dict().items()}
        own_head = type(self.algorithm).predict is not Algorithm.predict
        if own_head or self.algorithm.predicts_unknown:
            # A head of the algorithm is a classifier, so it is saved too.
            about |= {"algorithm": spec, "task": asdict(task)}
            tensors |= {f"algorithm.{n}": t for n, t in self.algorithm.state_dict().items()}
        write_tensors(path, tensors, fullmatch=json.dumps(about))

    @classmethod
    def load(cls, path: Path, named: Callable[[], Collection[str]] = tuple) -> "Classifier":
        """Read what `save` wrote, ready for prediction on the CPU.

        `named` returns `module:name` of code that may be imported, such as those in a config.
        """
        about, tensors = read_model_file(path)
        refuse_unnamed(references_in(about), named, path)
        try:
            classifier = build_classifier(cls, about, tensors)
        except DESCRIPTION_ERRORS as error:
            raise other_version(path, error) from None
        if classifier.state_dict().keys() != tensors.keys():
            raise UserError(
                f"{path} does not fit the model {about['model']!r} it names; restore it, or train "
                "it again"
            )
        try:
            classifier.load_state_dict(tensors)
        except RuntimeError as error:
            raise other_version(path, error) from None
        return classifier.to(memory_format=torch.channels_last).eval()


def references_in(about: dict[str, Any]) -> list[str]:
    """Code that a model's file names: its network, and the method whose head it uses."""
    algorithm = about.get("algorithm")
    names = [about.get("model"), algorithm.get("name") if isinstance(algorithm, dict) else None]
    return [name for name in names if isinstance(name, str) and is_reference(name)]


def build_classifier(
    cls: type[Classifier], about: dict[str, Any], tensors: Mapping[str, Tensor]
) -> Classifier:
    """A classifier as a model's file describes it, before its weights are filled in."""
    appearance = from_table(Appearance, about["appearance"])
    classes = checked(about["classes"], tuple[str, ...], "classes")
    image = checked(about["image"], tuple[int, int, int], "image")
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise ValueError("classes are not two or more different names")
    if not all(0 < length <= LARGEST_SIDE for length in (*image, appearance.crop or 1)):
        raise ValueError(f"image is {image}")
    check_frozen(about.get("frozen", {}), tensors)
    view = (image[0], appearance.crop or image[1], appearance.crop or image[2])
    with preserve_rng(torch.device("cpu")):  # the first weights are drawn, then replaced
        network = build_saved_network(about, len(classes), view)
        algorithm = build_algorithm(about)
    return cls(network, algorithm, Augmenter(appearance), classes=classes, image=image)


def check_frozen(frozen: dict[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """A description must not ask for more memory than the tensors of its file take."""
    size = sum(tensor.numel() for tensor in tensors.values())
    for name, value in frozen.items():
        numbers = value if isinstance(value, list) else [0 if value is None else value]
        if not all(type(number) is int and 0 <= number <= size for number in numbers):
            raise ValueError(f"frozen.{name} is {value!r}")


def read_model_file(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description in a model's file, and its tensors."""
    if path.is_file() and not os.access(path, os.R_OK):  # safetensors would report it as missing
        raise UserError(f"no permission to read {path}; ask its owner for it")
    try:
        require_regular(path)
        with safe_open(path, framework="pt") as file:
            about: dict[str, Any] = parse_json(file.metadata()["fullmatch"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if not isinstance(about, dict):
            raise ValueError("its description is not a table")
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        raise UserError(
            f"{path} is missing, damaged, or not a fullmatch model; train one with: fullmatch train"
        ) from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise UserError(
                f"{path} is damaged ({name} has weights that are NaN or infinite); if it is of a "
                f"run, write it again with: fullmatch resume {shlex.quote(str(path.parent))}"
            )
    return about, tensors


def build_algorithm(about: dict[str, Any]) -> Algorithm:
    """The algorithm whose head is the classifier, or a plain one if the network's own head is."""
    from fullmatch.algorithms import algorithm as spec_of

    if "algorithm" not in about:
        return Algorithm()
    fields = dict(about["algorithm"])
    spec = spec_of(fields.pop("name"))
    task: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in about["task"].items()}
    algorithm: Algorithm = from_table(type(spec), fields, "algorithm.").build(Task(**task))
    return algorithm


def other_version(path: Path, error: Exception) -> UserError:
    message = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    reason = " ".join(message.split())
    return UserError(
        f"{path} was not written by this version of fullmatch ({reason}); use the version that "
        "wrote it, or train it again with: fullmatch train"
    )


def describe_frozen(network: FrozenNetwork) -> dict[str, Any]:
    """What is needed to build a network with a frozen body again."""
    body, classifier = network.body, network.body.classifier
    return {
        "landmarks": len(body.landmarks) if isinstance(body, LandmarkBody) else None,
        "sizes": network.body.sizes,
        "widths": network.embedding.widths,
        "dimensions": network.embedding.dimensions,
        "classifier": None if classifier is None else classifier.out_features,
        "named": None if body.named is None else body.named.shape[1],
    }


def build_saved_network(
    about: dict[str, Any], num_classes: int, view: tuple[int, int, int]
) -> Network:
    """A network as it was saved, before its weights are read."""
    frozen = about.get("frozen", {})
    if frozen.get("landmarks") is not None:
        body: FrozenBody = LandmarkBody(view[2], int(frozen["landmarks"]))
        return FrozenNetwork(body, saved_embedding(frozen), num_classes)
    network = build_network(
        about["model"], num_classes, view, torchssl_blocks=about.get("torchssl_blocks", False)
    )
    if not frozen:
        return network
    if not isinstance(network, Backbone):
        raise UserError(f"model {about['model']!r} has no body to freeze")
    count = frozen["classifier"]
    classifier = None if count is None else nn.Linear(network.head.in_features, int(count))
    named = torch.zeros(int(count), int(frozen["named"])) if frozen.get("named") else None
    body = FrozenBody(network.body, classifier, tuple(map(int, frozen["sizes"])), named)
    return FrozenNetwork(body, saved_embedding(frozen), num_classes)


def saved_embedding(frozen: dict[str, Any]) -> Embedding:
    return Embedding(tuple(frozen["widths"]), tuple(frozen["dimensions"]))
