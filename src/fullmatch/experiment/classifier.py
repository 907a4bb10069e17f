"""A trained classifier: network, algorithm and preprocessing, in one file that runs no code."""

import json
import os
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
from fullmatch.models import Backbone, build_network
from fullmatch.models.frozen import Embedding, FrozenBody, FrozenNetwork
from fullmatch.storage.tensors import write_tensors
from fullmatch.training.randomness import preserve_rng


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

    def forward(self, images: Tensor) -> Tensor:
        """(B, channels, H, W) uint8 -> (B, C) probabilities."""
        view = self.augment(images, "plain").contiguous(memory_format=torch.channels_last)
        return self.algorithm.predict(self.network, view)

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
        tensors = {f"network.{n}": t for n, t in self.network.state_dict().items()}
        if type(self.algorithm).predict is not Algorithm.predict:
            # The algorithm's own head is the classifier, so it is saved too.
            about |= {"algorithm": spec, "task": asdict(task)}
            tensors |= {f"algorithm.{n}": t for n, t in self.algorithm.state_dict().items()}
        write_tensors(path, tensors, fullmatch=json.dumps(about))

    @classmethod
    def load(cls, path: Path) -> "Classifier":
        """Read what `save` wrote, ready for prediction on the CPU."""
        about, tensors = read_model_file(path)
        try:
            appearance = from_table(Appearance, about["appearance"])
            algorithm = build_algorithm(about)
            model, classes, image = about["model"], tuple(about["classes"]), tuple(about["image"])
            view = (image[0], appearance.crop or image[1], appearance.crop or image[2])
        except (KeyError, IndexError, TypeError, UserError) as error:
            raise other_version(path, error) from None
        with preserve_rng(torch.device("cpu")):  # the first weights are drawn, then replaced
            body = build_saved_network(about, len(classes), view)
        classifier = cls(body, algorithm, Augmenter(appearance), classes=classes, image=image)
        if classifier.state_dict().keys() != tensors.keys():
            raise UserError(
                f"{path} does not fit the model {model!r} it names; restore it, or train it again"
            )
        try:
            classifier.load_state_dict(tensors)
        except RuntimeError as error:
            raise other_version(path, error) from None
        return classifier.to(memory_format=torch.channels_last).eval()


def read_model_file(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description in a model's file, and its tensors."""
    if path.is_file() and not os.access(path, os.R_OK):  # safetensors would report it as missing
        raise UserError(f"no permission to read {path}; ask its owner for it")
    try:
        with safe_open(path, framework="pt") as file:
            about: dict[str, Any] = json.loads(file.metadata()["fullmatch"])
            return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        raise UserError(
            f"{path} is missing, damaged, or not a fullmatch model; train one with: fullmatch train"
        ) from None


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
    classifier = network.body.classifier
    return {
        "sizes": network.body.sizes,
        "widths": network.embedding.widths,
        "dimensions": network.embedding.dimensions,
        "classifier": None if classifier is None else classifier.out_features,
    }


def build_saved_network(
    about: dict[str, Any], num_classes: int, view: tuple[int, int, int]
) -> Network:
    """A network as it was saved, before its weights are read."""
    network = build_network(about["model"], num_classes, view)
    if "frozen" not in about:
        return network
    frozen = about["frozen"]
    if not isinstance(network, Backbone):
        raise UserError(f"model {about['model']!r} has no body to freeze")
    count = frozen["classifier"]
    classifier = None if count is None else nn.Linear(network.head.in_features, int(count))
    body = FrozenBody(network.body, classifier, tuple(map(int, frozen["sizes"])))
    embedding = Embedding(tuple(frozen["widths"]), tuple(frozen["dimensions"]))
    return FrozenNetwork(body, embedding, num_classes)
