"""Networks by name."""

from fullmatch.core import Network
from fullmatch.errors import UserError, did_you_mean
from fullmatch.models.backbones import (
    Backbone,
    build_timm,
    build_torchvision,
    feature_map_shape,
    list_torchvision,
)
from fullmatch.models.kernels import accelerate
from fullmatch.models.wide_resnet import WIDE_RESNET, WideResNet
from fullmatch.plugins import check_call, is_reference, load_object

__all__ = ["MODELS", "Backbone", "WideResNet", "build_network", "feature_map_shape"]

MODELS = {
    "wrn-28-2": "Wide ResNet for 32x32 (CIFAR-10, SVHN)",
    "wrn-28-8": "Wide ResNet for 32x32 with many classes (CIFAR-100)",
    "wrn-37-2": "Wide ResNet of four groups for 96x96 (STL-10)",
    "wrn-10-1": "small Wide ResNet for tiny images",
    "resnet50": "torchvision's ResNet-50 (ImageNet)",
    "<any torchvision classifier>": "by its torchvision name, such as resnet18 or convnext_tiny",
    "timm:<name>": "by its timm name; transformers at other sizes, too: timm:vit_small_patch2_32",
    "<module>:<function>": "your own: called with num_classes and image, returns a core.Network",
}


def build_network(
    name: str,
    num_classes: int,
    image: tuple[int, int, int],
    *,
    pretrained: bool = False,
    norm_momentum: float = 0.001,
    torchssl_blocks: bool = False,
    fit: bool = False,
) -> Network:
    """Build a network by name, for images of (channels, height, width).

    With `fit`, one of timm's transformers is built for this size, if it takes only one size.
    """
    if wide := WIDE_RESNET.fullmatch(name):
        if pretrained:
            raise UserError(f"model {name!r} has no pretrained weights: leave model.pretrained off")
        depth, width = int(wide["depth"]), int(wide["width"])
        if depth != 37 and depth % 6 != 4:
            raise UserError(f"model {name!r}: the depth must be 6n + 4, such as wrn-16-2, or 37")
        # "37" is the field's name for depth 28 with a fourth group.
        network = WideResNet(
            num_classes,
            depth=28 if depth == 37 else depth,
            width=width,
            channels=image[0],
            groups=4 if depth == 37 else 3,
            first_stride=2 if depth == 37 else 1,
            norm_momentum=norm_momentum,
            torchssl_blocks=torchssl_blocks,
        )
        return accelerate(network)
    if torchssl_blocks:
        raise UserError(
            f"model {name!r} is not a Wide ResNet: leave model.torchssl_blocks off, or choose a "
            "network such as wrn-28-2"
        )
    if name.startswith("timm:"):
        name = name.removeprefix("timm:")
        return build_timm(name, num_classes, image, pretrained=pretrained, fit=fit)
    if is_reference(name):
        return build_own_network(name, num_classes, image, pretrained=pretrained)
    torchvision_names = list_torchvision()
    if name not in torchvision_names:
        names = [*(model for model in MODELS if "<" not in model), *torchvision_names]
        raise UserError(
            f"unknown model {name!r} (see: fullmatch list models){did_you_mean(name, names)}"
        )
    return build_torchvision(name, num_classes, pretrained=pretrained)


def build_own_network(
    name: str, num_classes: int, image: tuple[int, int, int], *, pretrained: bool
) -> Network:
    """A network by `module:function`, which may also be a class."""
    if pretrained:
        raise UserError(f"model {name!r} loads its own weights, if any: leave model.pretrained off")
    build = load_object(name, "network")
    arguments = {"num_classes": num_classes, "image": image}
    check_call(build, f"model {name!r} has to take num_classes and image", **arguments)
    network = build(**arguments)
    if not isinstance(network, Network):
        raise UserError(f"model {name!r} made a {type(network).__name__}; return a core.Network")
    return network
