"""Networks of torchvision and timm, taken apart into feature map, pooling and classifier."""

from typing import Any

import torch
from torch import Tensor, nn

from fullmatch.core import Network
from fullmatch.errors import UserError


class Backbone(Network):
    """Any classifier whose last linear layer is its head; grey images are repeated to three."""

    def __init__(self, body: nn.Module, features: int, num_classes: int) -> None:
        super().__init__()
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

    model: Any = models.get_model(name, weights="DEFAULT" if pretrained else None)
    if isinstance(model, models.ResNet):
        # ResNets keep their map, for algorithms whose heads read it.
        body = nn.Sequential(*list(model.children())[:-2])
        return Backbone(body, int(model.fc.in_features), num_classes)
    return Backbone(*beheaded(model, name), num_classes)


def timm_network(name: str, num_classes: int, *, pretrained: bool) -> Backbone:
    """A timm classifier by name, with a new head."""
    try:
        import timm
    except ImportError:
        raise UserError(f"model {name!r} comes from timm: pip install 'fullmatch[timm]'") from None
    body = timm.create_model(name, pretrained=pretrained, num_classes=0)
    return Backbone(body, int(body.num_features), num_classes)  # type: ignore[arg-type]


def torchvision_names() -> list[str]:
    from torchvision import models

    return [str(name) for name in models.list_models(module=models)]


def beheaded(model: nn.Module, name: str) -> tuple[nn.Module, int]:
    """The model with its last linear layer replaced by nothing, and what that layer received."""
    linear = [(path, m) for path, m in model.named_modules() if isinstance(m, nn.Linear)]
    if not linear or hasattr(model, "aux_logits"):
        raise UserError(f"model {name!r} has no plain linear head; choose another model")
    path, head = linear[-1]
    parent = model.get_submodule(path.rpartition(".")[0])
    setattr(parent, path.rpartition(".")[2], nn.Identity())
    return model, head.in_features


@torch.no_grad()
def shape_of_map(network: Network, image: tuple[int, int, int]) -> tuple[int, int, int]:
    """Channels, height and width of a network's feature map for images of this shape."""
    training = network.training
    network.eval()
    parameter = next(network.parameters())
    found = network.feature_map(torch.zeros(2, *image, device=parameter.device)).shape
    network.train(training)
    return int(found[1]), int(found[2]), int(found[3])
