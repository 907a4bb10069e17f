"""Classifiers from torchvision and timm, split into a body and a new head."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from fullmatch.core import Network
from fullmatch.errors import UserError, did_you_mean
from fullmatch.models.transformers import fitting_side, resolve_sizes

Normalization = tuple[tuple[float, ...], tuple[float, ...]]  # mean and std per channel


class Backbone(Network):
    """Any classifier whose last linear layer is its head; grayscale is repeated to three channels.

    `names` maps the published names of the model's parts to their names in this network.
    `normalization` is that of the images on which the published weights were trained;
    `fixed_size` is the only side that images may have, None for any.
    """

    def __init__(
        self,
        body: nn.Module,
        features: int,
        num_classes: int,
        *,
        names: Mapping[str, str] = MappingProxyType({"": "body"}),
        normalization: Normalization | None = None,
        fixed_size: int | None = None,
    ) -> None:
        super().__init__()
        self.names = dict(names)
        self.fixed_size = fixed_size
        self.normalization = normalization
        self.body = body
        self.head = nn.Linear(features, num_classes)
        nn.init.normal_(self.head.weight, std=0.01)
        nn.init.zeros_(self.head.bias)

    def feature_map(self, images: Tensor) -> Tensor:
        if images.shape[1] == 1:
            images = images.expand(-1, 3, -1, -1)
        features: Tensor = self.body(images)
        # A body that pools by itself returns vectors, which are maps of one pixel.
        return features if features.dim() == 4 else features[:, :, None, None]

    def classify(self, features: Tensor) -> Tensor:
        logits: Tensor = self.head(features)
        return logits


def build_torchvision(name: str, num_classes: int, *, pretrained: bool) -> Backbone:
    """Build a torchvision classifier by name, with a new head."""
    from torchvision import models

    weights = models.get_model_weights(name).DEFAULT
    model: Any = build_or_explain(
        name, pretrained, lambda: models.get_model(name, weights=weights if pretrained else None)
    )
    transforms = weights.transforms()
    normalization = (tuple(transforms.mean), tuple(transforms.std))
    if isinstance(model, models.ResNet):
        # ResNets keep their feature map, for algorithms whose heads read it.
        parts = list(model.named_children())[:-2]
        names = {part: f"body.{index}" for index, (part, _) in enumerate(parts)} | {"fc": "head"}
        body: nn.Module = nn.Sequential(*(module for _, module in parts))
        features = int(model.fc.in_features)
    else:
        body, features, head = remove_head(model, name)
        names = {"": "body", head: "head"}
    fixed_size = model.image_size if isinstance(model, models.VisionTransformer) else None
    return Backbone(
        body,
        features,
        num_classes,
        names=names,
        normalization=normalization,
        fixed_size=fixed_size,
    )


def build_timm(
    name: str, num_classes: int, image: tuple[int, int, int], *, pretrained: bool, fit: bool = False
) -> Backbone:
    """Build a timm classifier by name, with a new head.

    With `fit`, a transformer that takes one size only is built for that of the images.
    """
    try:
        import timm
    except ImportError:
        raise UserError(f"model {name!r} comes from timm: pip install timm") from None
    base, sizes = resolve_sizes(name)
    if ":" not in base and not timm.is_model(base):
        names = timm.list_models()
        raise UserError(f"timm has no model {name!r}{did_you_mean(name.split('.')[0], names)}")
    if fit and ":" not in base and (side := fitting_side(base, sizes, image)) is not None:
        sizes = sizes | {"img_size": side}
    arguments: dict[str, Any] = {"num_classes": 0, **sizes}
    body: Any = build_or_explain(
        f"timm:{name}",
        pretrained,
        lambda: timm.create_model(base, pretrained=pretrained, **arguments),
        sizes.get("img_size"),
    )
    config = body.pretrained_cfg
    fixed_size = config["input_size"][1] if config.get("fixed_input_size") else None
    head = config.get("classifier")
    return Backbone(
        body,
        # Only some timm models declare the width in front of their classifier.
        int(getattr(body, "head_hidden_size", None) or body.num_features),
        num_classes,
        names={"": "body"} | ({head: "head"} if isinstance(head, str) else {}),
        normalization=(tuple(config["mean"]), tuple(config["std"])),
        fixed_size=sizes.get("img_size", fixed_size),
    )


def build_or_explain(
    name: str, pretrained: bool, build: Callable[[], nn.Module], side: int | None = None
) -> nn.Module:
    """Build a network; if its published weights cannot be downloaded, say what to do instead.

    `side` is the size of the images, where the network is built for it.
    """
    try:
        return build()
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        if not pretrained and side is not None:
            raise UserError(
                f"model {name!r} cannot be built for images of {side}x{side} ({reason}); use "
                "pictures of another size, or another model"
            ) from None
        if not pretrained:
            raise
        raise UserError(
            f"cannot download the pretrained weights of {name} ({reason}); without internet, pass "
            f"a file with them: --model {name} --weights FILE"
        ) from None


def list_torchvision() -> list[str]:
    from torchvision import models

    return [str(name) for name in models.list_models(module=models)]


def remove_head(model: nn.Module, name: str) -> tuple[nn.Module, int, str]:
    """Remove the last linear layer; return the model, the layer's input width and its name."""
    linear = [(path, m) for path, m in model.named_modules() if isinstance(m, nn.Linear)]
    # Models with `aux_logits` return several outputs in training.
    if not linear or hasattr(model, "aux_logits"):
        raise UserError(f"model {name!r} has no plain linear head; choose another model")
    path, head = linear[-1]
    parent = model.get_submodule(path.rpartition(".")[0])
    setattr(parent, path.rpartition(".")[2], nn.Identity())
    return model, head.in_features, path


@torch.no_grad()
def feature_map_shape(network: Network, image: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return channels, height and width of a network's feature map for images of this shape."""
    training = network.training
    network.eval()
    parameter = next(network.parameters())
    blank = torch.zeros(2, *image, device=parameter.device)
    try:
        shape = network.feature_map(blank).shape
    except Exception as error:  # networks check their input in many ways, or not at all
        reason = str(error).strip().partition("\n")[0].rstrip(".!") or type(error).__name__
        raise UserError(
            f"the network does not take images of {image[1]}x{image[2]} ({reason}); use pictures "
            "of another size, or another model"
        ) from None
    finally:
        network.train(training)
    return int(shape[1]), int(shape[2]), int(shape[3])
