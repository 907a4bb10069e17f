"""Layers of any network, and learning rates that fall from the head to the input."""

import pytest
from torch import nn

from fullmatch.models import build_network
from fullmatch.models.layers import layer_scales, list_layers


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("wrn-10-1", 5),  # stem, three blocks, head
        ("resnet18", 6),  # stem with its norm, four stages, head
        ("timm:tf_efficientnet_lite0", 10),  # stem, seven stages, last convolution, head
        ("timm:vit_tiny_patch16_224", 14),  # patches with positions, twelve blocks, head
        ("timm:convnext_atto", 7),
    ],
)
def test_every_parameter_is_in_one_layer(name: str, layers: int) -> None:
    network = build_network(name, 4, (3, 224, 224))
    found = list_layers(network)
    assert len(found) == layers
    everything = [parameter for layer in found for parameter in layer]
    assert sorted(map(id, everything)) == sorted(map(id, network.parameters()))
    assert network.get_parameter("head.weight") in set(found[-1])


def test_rates_fall_by_the_same_factor_per_layer() -> None:
    network = nn.Sequential()
    network.stem = nn.Conv2d(3, 4, 1)
    network.blocks = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1))
    network.head = nn.Linear(4, 2)
    scales = layer_scales(network, 0.5)
    by_name = {name: scales[p] for name, p in network.named_parameters() if "weight" in name}
    assert by_name == {
        "stem.weight": 0.125,
        "blocks.0.weight": 0.25,
        "blocks.1.weight": 0.25,
        "blocks.2.weight": 0.5,
        "head.weight": 1.0,
    }


def test_without_decay_nothing_is_scaled() -> None:
    assert layer_scales(nn.Linear(2, 2), 1.0) == {}
