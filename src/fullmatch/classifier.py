"""A trained classifier: network, algorithm and preprocessing, in one file that runs no code."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from fullmatch.augment.views import Augmenter
from fullmatch.config import from_table, to_table
from fullmatch.core import Algorithm, Appearance, Network, Task
from fullmatch.errors import UserError
from fullmatch.models import network
from fullmatch.training.randomness import borrowed


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
        """Write weights and all that is needed to build them up again."""
        about = {
            "model": model,
            "image": self.image,
            "classes": self.classes,
            "appearance": to_table(self.augment.appearance),
        }
        tensors = {f"network.{n}": t for n, t in self.network.state_dict().items()}
        if type(self.algorithm).predict is not Algorithm.predict:
            # The algorithm's own head is the classifier, so it goes along.
            about |= {"algorithm": spec, "task": asdict(task)}
            tensors |= {f"algorithm.{n}": t for n, t in self.algorithm.state_dict().items()}
        plain = {n: t.detach().to("cpu").contiguous() for n, t in tensors.items()}
        aside = path.with_name(f".{path.name}")
        save_file(plain, aside, metadata={"fullmatch": json.dumps(about)})
        aside.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Classifier":
        """Read what `save` wrote, ready for prediction on the CPU."""
        from fullmatch.algorithms import algorithm as spec_of

        try:
            with safe_open(path, framework="pt") as file:
                about = json.loads(file.metadata()["fullmatch"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, KeyError, TypeError, ValueError):
            raise UserError(
                f"{path} is missing, damaged, or no model of fullmatch; train one with: "
                "fullmatch train"
            ) from None
        appearance = from_table(Appearance, about["appearance"])
        classes, image = tuple(about["classes"]), tuple(about["image"])
        view = (image[0], appearance.crop or image[1], appearance.crop or image[2])
        with borrowed(torch.device("cpu")):  # its first weights are drawn, then replaced
            body = network(about["model"], len(classes), view)
        algorithm = Algorithm()
        if "algorithm" in about:
            named = dict(about["algorithm"])
            spec = spec_of(named.pop("name"))
            task: Any = {
                k: tuple(v) if isinstance(v, list) else v for k, v in about["task"].items()
            }
            algorithm = from_table(type(spec), named, "algorithm.").build(Task(**task))
        classifier = cls(body, algorithm, Augmenter(appearance), classes=classes, image=image)
        if classifier.state_dict().keys() != tensors.keys():
            raise UserError(f"{path} does not fit the model {about['model']!r} it names")
        classifier.load_state_dict(tensors)
        return classifier.to(memory_format=torch.channels_last).eval()
