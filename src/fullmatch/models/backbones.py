"""Networks of torchvision and timm, taken apart into feature map, pooling and classifier."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from fullmatch.core import Network
from fullmatch.errors import UserError, did_you_mean

Normal = tuple[tuple[float, ...], tuple[float, ...]]  # mean and deviation of each channel


class Backbone(Network):
    """Any classifier whose last linear layer is its head; grey images are repeated to three."""

    def __init__(
        self,
        body: nn.Module,
        features: int,
        num_classes: int,
        *,
        names: Mapping[str, str] = MappingProxyType({"": "body"}),
        normal: Normal | None = None,
    ) -> None:
        super().__init__()
        self.names = dict(names)  # of the parts as published, and where they are here
        self.normal = normal  # of the pictures that published weights have learned from
        self.body = body
        self.head = nn.Linear(features, num_classes)
        nn.init.normal_(self.head.weight, std=0.01)
        nn.init.zeros_(self.head.bias)

    def feature_map(self, images: Tensor) -> Tensor:
        if images.shape[1] == 1:
            images = images.expand(-1, 3, -1, -1)
        features: Tensor = self.body(images)
        # A body that pools by itself leaves a map of a single pixel.
        return features if features.dim() == 4 else features[:, :, None, None]

    def classify(self, features: Tensor) -> Tensor:
        logits: Tensor = self.head(features)
        return logits


def torchvision_network(name: str, num_classes: int, *, pretrained: bool) -> Backbone:
    """A torchvision classifier by name, with a new head."""
    from torchvision import models

    published = models.get_model_weights(name).DEFAULT
    model: Any = fetched(
        name, pretrained, lambda: models.get_model(name, weights=published if pretrained else None)
    )
    pictures = published.transforms()
    normal = (tuple(pictures.mean), tuple(pictures.std))
    if isinstance(model, models.ResNet):
        # ResNets keep their map, for algorithms whose heads read it.
        parts = list(model.named_children())[:-2]
        names = {part: f"body.{at}" for at, (part, _) in enumerate(parts)} | {"fc": "head"}
        kept = nn.Sequential(*(module for _, module in parts))
        return Backbone(kept, int(model.fc.in_features), num_classes, names=names, normal=normal)
    body, features, head = beheaded(model, name)
    return Backbone(body, features, num_classes, names={"": "body", head: "head"}, normal=normal)


def timm_network(name: str, num_classes: int, *, pretrained: bool) -> Backbone:
    """A timm classifier by name, with a new head."""
    try:
        import timm
    except ImportError:
        raise UserError(f"model {name!r} comes from timm: pip install 'fullmatch[timm]'") from None
    if ":" not in name and not timm.is_model(name):
        known = timm.list_models()
        raise UserError(f"timm has no model {name!r}{did_you_mean(name.split('.')[0], known)}")
    body: Any = fetched(
        f"timm:{name}",
        pretrained,
        lambda: timm.create_model(name, pretrained=pretrained, num_classes=0),
    )
    facts = body.pretrained_cfg
    head = facts.get("classifier")
    return Backbone(
        body,
        int(getattr(body, "head_hidden_size", None) or body.num_features),
        num_classes,
        names={"": "body"} | ({head: "head"} if isinstance(head, str) else {}),
        normal=(tuple(facts["mean"]), tuple(facts["std"])),
    )


def fetched(name: str, pretrained: bool, build: Callable[[], nn.Module]) -> nn.Module:
    """The network; where its published weights cannot be had, a sentence about what to do."""
    try:
        return build()
    except Exception as error:
        if not pretrained:
            raise
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"cannot get the pretrained weights of {name} ({reason}); without internet, give "
            f"their file: --model {name} --weights FILE"
        ) from None


def torchvision_names() -> list[str]:
    from torchvision import models

    return [str(name) for name in models.list_models(module=models)]


def beheaded(model: nn.Module, name: str) -> tuple[nn.Module, int, str]:
    """The model without its last linear layer, what that layer received, and where it was."""
    linear = [(path, m) for path, m in model.named_modules() if isinstance(m, nn.Linear)]
    if not linear or hasattr(model, "aux_logits"):
        raise UserError(f"model {name!r} has no plain linear head; choose another model")
    path, head = linear[-1]
    parent = model.get_submodule(path.rpartition(".")[0])
    setattr(parent, path.rpartition(".")[2], nn.Identity())
    return model, head.in_features, path


@torch.no_grad()
def shape_of_map(network: Network, image: tuple[int, int, int]) -> tuple[int, int, int]:
    """Channels, height and width of a network's feature map for images of this shape."""
    training = network.training
    network.eval()
    parameter = next(network.parameters())
    found = network.feature_map(torch.zeros(2, *image, device=parameter.device)).shape
    network.train(training)
    return int(found[1]), int(found[2]), int(found[3])
