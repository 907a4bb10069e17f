"""The file of a model, typed: what it says about itself, and its tensors. It runs no code."""

import json
import math
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from fullmatch.config import SettingsTable, from_table, to_table
from fullmatch.core import Appearance, Task
from fullmatch.errors import UserError
from fullmatch.files.reading import parse_json, require_tensors
from fullmatch.models.frozen import FrozenNetwork
from fullmatch.models.landmarks import LandmarkBody
from fullmatch.models.wide_resnet import WIDE_RESNET, least_weights
from fullmatch.plugins import is_reference
from fullmatch.storage.json_files import WrongValue, from_json
from fullmatch.storage.tensors import write_tensors

METADATA = "fullmatch"  # key of the description in the metadata of the safetensors file
LARGEST_PICTURE = 3 * 2**24  # numbers in a picture of 4096 x 4096, or in a row of features


@dataclass(frozen=True, kw_only=True)
class FrozenDescription:
    """What is needed to build a network with a frozen body again."""

    sizes: tuple[int, ...]  # that the body sees pictures in
    widths: tuple[int, ...]  # of its features
    dimensions: tuple[int, ...]  # that remain of them
    classifier: int | None = None  # outputs of the pretrained classifier, if it is used
    named: int | None = None  # classes of the model that ImageNet knows by name
    landmarks: int | None = None  # of a body that takes features instead of pictures

    @classmethod
    def of(cls, network: FrozenNetwork) -> "FrozenDescription":
        body, classifier = network.body, network.body.classifier
        return cls(
            sizes=tuple(body.sizes),
            widths=tuple(network.embedding.widths),
            dimensions=tuple(network.embedding.dimensions),
            classifier=None if classifier is None else classifier.out_features,
            named=None if body.named is None else body.named.shape[1],
            landmarks=len(body.landmarks) if isinstance(body, LandmarkBody) else None,
        )

    def check(self, tensors: Mapping[str, Tensor]) -> None:
        """It must not ask for more memory than the tensors of its file take."""
        size = sum(tensor.numel() for tensor in tensors.values())
        for field in fields(self):
            value = getattr(self, field.name)
            numbers = value if isinstance(value, tuple) else (value or 0,)
            if not all(0 <= number <= size for number in numbers):
                raise ValueError(f"frozen.{field.name} is {value!r}")


@dataclass(frozen=True, kw_only=True)
class ModelDescription:
    """What a model's file says about itself."""

    model: str  # name of the network
    image: tuple[int, int, int]  # (channels, height, width) of a stored image
    classes: tuple[str, ...]
    appearance: Appearance
    frozen: FrozenDescription | None = None
    torchssl_blocks: bool = False
    # Of a method whose own head is the classifier; otherwise None.
    algorithm: SettingsTable | None = None
    task: Task | None = None

    @classmethod
    def parse(cls, table: SettingsTable) -> "ModelDescription":
        """`WrongValue` or `UserError` for what this version does not know."""
        description = from_json(cls, table)
        from_table(Appearance, table["appearance"])  # a step of preprocessing must not be ignored
        return description

    @property
    def view(self) -> tuple[int, int, int]:
        """(channels, height, width) of what the network sees."""
        crop = self.appearance.crop
        return (self.image[0], crop or self.image[1], crop or self.image[2])

    @property
    def references(self) -> list[str]:
        """Code that it names: its network, and the method whose head it uses."""
        names = [self.model, (self.algorithm or {}).get("name")]
        return [name for name in names if isinstance(name, str) and is_reference(name)]

    def check(self, tensors: Mapping[str, Tensor]) -> None:
        """`ValueError` for what no model can have."""
        if len(self.classes) < 2 or len(set(self.classes)) < len(self.classes):
            raise ValueError("classes are not two or more different names")
        for shape in (self.image, self.view):
            if min(shape) <= 0 or math.prod(shape) > LARGEST_PICTURE:
                raise ValueError(f"pictures of {shape}")
        self.check_network(tensors)
        if self.frozen is not None:
            self.frozen.check(tensors)
        if (self.algorithm is None) != (self.task is None):
            raise ValueError("algorithm and task belong together")

    def check_network(self, tensors: Mapping[str, Tensor]) -> None:
        """`ValueError` for a network that has more weights than the file: it is never built."""
        if wide := WIDE_RESNET.fullmatch(self.model):
            needed = least_weights(int(wide["depth"]), int(wide["width"]))
            if needed > sum(tensor.numel() for tensor in tensors.values()):
                raise ValueError(f"{self.model} has more weights than the file")


@dataclass(frozen=True)
class ModelFile:
    """A model as it is stored."""

    description: ModelDescription
    tensors: dict[str, Tensor]

    def write(self, path: Path) -> None:
        write_tensors(path, self.tensors, **{METADATA: json.dumps(to_table(self.description))})

    @classmethod
    def read(cls, path: Path) -> "ModelFile":
        """`UserError` for a file that is missing, damaged, or of another kind or version."""
        if path.is_file() and not os.access(path, os.R_OK):  # safetensors reports it as missing
            raise UserError(f"no permission to read {path}; ask its owner for it")
        try:
            require_tensors(path)
            with safe_open(path, framework="pt") as file:
                table = parse_json(file.metadata()[METADATA])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if not isinstance(table, dict):
                raise ValueError("its description is not a table")
        except (OSError, SafetensorError, KeyError, TypeError, ValueError):
            raise UserError(
                f"{path} is missing, damaged, or not a fullmatch model; train one with: "
                "fullmatch train"
            ) from None
        check_finite(path, tensors)
        try:
            description = ModelDescription.parse(table)
            description.check(tensors)
        except (UserError, ValueError) as error:
            raise other_version(path, error) from None
        return cls(description, tensors)


def check_finite(path: Path, tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise UserError(
                f"{path} is damaged ({name} has weights that are NaN or infinite); if it is of a "
                f"run, write it again with: fullmatch resume {shlex.quote(str(path.parent))}"
            )


def prefixed(name: str, module: nn.Module) -> dict[str, Tensor]:
    return {f"{name}.{key}": tensor for key, tensor in module.state_dict().items()}


def other_version(path: Path, error: Exception) -> UserError:
    known = isinstance(error, UserError | WrongValue)
    message = str(error) if known else f"{type(error).__name__}: {error}"
    reason = " ".join(message.split())
    return UserError(
        f"{path} was not written by this version of fullmatch ({reason}); use the version that "
        "wrote it, or train it again with: fullmatch train"
    )
