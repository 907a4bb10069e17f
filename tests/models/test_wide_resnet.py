"""The Wide ResNet against published parameter counts and its definition, block by block."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.errors import UserError
from fullmatch.models import WideResNet, build_network, feature_map_shape
from fullmatch.models.wide_resnet import Block

NAMED: dict[str, dict[str, Any]] = {
    "wrn-28-2": {},
    "wrn-28-8": {"width": 8},
    "wrn-37-2": {"groups": 4, "first_stride": 2},
}


@pytest.mark.parametrize(
    ("name", "classes", "side", "with_bias", "without", "feature_map"),
    [
        ("wrn-28-2", 10, 32, 1_469_642, 1_467_610, (128, 8, 8)),
        ("wrn-28-2", 100, 32, 1_481_252, 1_479_220, (128, 8, 8)),
        ("wrn-28-8", 100, 32, 23_409_092, 23_401_012, (512, 8, 8)),
        ("wrn-37-2", 10, 96, 5_933_770, 5_929_434, (256, 6, 6)),
    ],
)
def test_published_sizes(
    name: str,
    classes: int,
    side: int,
    with_bias: int,
    without: int,
    feature_map: tuple[int, int, int],
) -> None:
    model = build_network(name, classes, (3, side, side))
    assert sum(p.numel() for p in model.parameters()) == without
    published = WideResNet(classes, **NAMED[name], conv_bias=True)
    assert sum(p.numel() for p in published.parameters()) == with_bias
    assert feature_map_shape(model, (3, side, side)) == feature_map
    output = model.eval()(torch.zeros(1, 3, side, side))
    assert output.logits.shape == (1, classes)
    assert output.features.shape == (1, feature_map[0])


def test_convolution_biases_do_not_change_training_outputs() -> None:
    torch.manual_seed(0)
    biased, plain = (WideResNet(4, depth=16, conv_bias=bias).train() for bias in (True, False))
    shared = {k: v for k, v in biased.state_dict().items() if k in plain.state_dict()}
    plain.load_state_dict(shared)
    images = torch.randn(8, 3, 16, 16)
    torch.testing.assert_close(biased(images).logits, plain(images).logits, rtol=1e-3, atol=1e-4)


def test_constants() -> None:
    model = WideResNet(10)
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    assert {(m.eps, m.momentum) for m in norms} == {(1e-3, 0.001)}
    assert not model.head.bias.any()
    first = model.get_parameter("blocks.4.conv1.weight")  # 64 filters of 32 x 3 x 3
    assert first.std().item() == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.03)


def reference_block(block: Block, x: Tensor, *, first: bool, raw: bool = False) -> Tensor:
    def activate(norm: nn.Module, value: Tensor) -> Tensor:
        return F.leaky_relu(norm(value), 0.1)

    active = activate(block.norm1, x)
    inner = block.conv1(x if raw else active)
    path = block.conv2(activate(block.norm2, inner))
    if block.shortcut is None:
        return x + path
    return block.shortcut(active if first else x) + path


@pytest.mark.parametrize("torchssl", [False, True])
def test_which_tensor_the_first_convolution_of_a_block_reads(torchssl: bool) -> None:
    """The activated one, but in TorchSSL not where later groups start."""
    torch.manual_seed(0)
    model = WideResNet(10, depth=16, width=2, torchssl_blocks=torchssl).eval()
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d):  # not the identity
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.uniform_(norm.bias, -1, 1)
            assert norm.running_mean is not None
            norm.running_mean.uniform_(-1, 1)
    images = torch.randn(2, 3, 16, 16)
    value = model.stem(images)
    for index, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        raw = torchssl and index in (2, 4)  # two blocks per group
        value = reference_block(block, value, first=index == 0, raw=raw)
    expected = F.leaky_relu(model.norm(value), 0.1)
    torch.testing.assert_close(model.feature_map(images), expected)
    features = expected.mean(dim=(2, 3))
    torch.testing.assert_close(model(images).features, features)
    torch.testing.assert_close(model(images).logits, model.head(features))


def test_every_parameter_learns() -> None:
    """A norm whose output is not used would get no gradient."""
    model = WideResNet(4, depth=16, width=1)
    model(torch.randn(4, 3, 8, 8)).logits.square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in model.parameters())


def test_torchssl_blocks_leave_two_norms_without_gradient() -> None:
    model = WideResNet(4, depth=16, width=1, torchssl_blocks=True).train()
    model(torch.randn(4, 3, 8, 8)).logits.square().sum().backward()
    unused = [name for name, p in model.named_parameters() if p.grad is None]
    assert unused == [f"blocks.{at}.norm1.{part}" for at in (2, 4) for part in ("weight", "bias")]
    statistics = model.get_buffer("blocks.2.norm1.running_mean")
    assert statistics.any()  # kept as in TorchSSL
    plain = WideResNet(4, depth=16, width=1)
    assert list(plain.state_dict()) == list(model.state_dict())


def test_torchssl_blocks_need_a_wide_resnet() -> None:
    network = build_network("wrn-10-1", 3, (1, 8, 8), torchssl_blocks=True)
    assert isinstance(network, WideResNet)
    assert network.torchssl_blocks
    with pytest.raises(UserError, match="'resnet18' is not a Wide ResNet"):
        build_network("resnet18", 3, (3, 32, 32), torchssl_blocks=True)


def strides_of(network: nn.Module) -> list[int]:
    return [block.conv1.stride[0] for block in network.modules() if isinstance(block, Block)]


def test_strides() -> None:
    assert strides_of(WideResNet(10)) == [1, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1]
    stl = build_network("wrn-37-2", 10, (3, 96, 96))
    assert strides_of(stl) == [2, 1, 1, 1] * 4
    assert stl.stem.stride == (1, 1)


def test_wrong_depth_raises() -> None:
    with pytest.raises(ValueError, match="depth is 12, expected 6n"):
        WideResNet(10, depth=12)
