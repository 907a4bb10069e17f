"""What the layers of a network do at once, against each doing it by itself."""

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from fullmatch.models import WideResNet
from fullmatch.models.kernels import convolution, normalization, passes
from fullmatch.models.kernels.convolution import Conv3x3
from fullmatch.models.kernels.passes import Pass


class Layers(nn.Module):
    """The middle one is narrow, so its weight is rounded by its own kernel."""

    def __init__(self) -> None:
        super().__init__()
        layers = (nn.Conv2d(3, 16, 1, bias=False), Conv3x3(16, 32), Conv3x3(32, 8))
        self.layers = nn.ModuleList(layers).to(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        batch = Pass(self.layers.modules(), x)
        for layer in self.layers:
            # Wide again, since not every CPU computes in bfloat16.
            batch.weights.update({c: w.float() for c, w in batch.weights.items() if c is layer})
            x = batch.convolved(layer, x)
        batch.end()
        return x


class OneByOne(nn.Module):
    def __init__(self, given: Layers) -> None:
        super().__init__()
        self.layers = given.layers

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            narrow = getattr(layer, "narrow", False)
            weight = layer.weight if narrow else layer.weight.bfloat16().float()
            x = layer._conv_forward(x, weight, None)
        return x


@pytest.mark.parametrize("compiled", [False, True])
def test_weights_rounded_at_once(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    network, images = Layers(), torch.randn(2, 3, 5, 4)
    expected = gradients(OneByOne(network), images)
    monkeypatch.setattr(passes, "kernels_for", lambda x: True)
    work = torch.compile(network, fullgraph=True, backend="aot_eager") if compiled else network
    for found, wanted in zip(gradients(work, images), expected, strict=True):
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def gradients(network: nn.Module, images: Tensor) -> list[Tensor]:
    network.zero_grad()
    result = network(images)
    result.square().sum().backward()
    return [result.detach(), *(p.grad for p in network.parameters() if p.grad is not None)]


def test_weights_stay_as_they_are_where_no_kernels_run() -> None:
    network, images = Layers(), torch.randn(2, 3, 5, 4)
    assert not Pass(network.modules(), images).weights
    wanted = images
    for layer in network.layers:
        wanted = layer(wanted)
    assert torch.equal(network(images), wanted)


def test_a_whole_network_by_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its outputs, its running statistics, and every weight of a library's rounded in use."""
    torch.manual_seed(0)
    cuda = torch.cuda.is_available()
    kind = torch.bfloat16 if cuda else torch.float32
    plain = WideResNet(4, depth=10, norm_momentum=0.1)
    plain = plain.to("cuda" if cuda else "cpu", memory_format=torch.channels_last)
    with torch.no_grad():
        for weight in plain.parameters():
            weight.copy_(weight.bfloat16())
    ours = deepcopy(plain)
    with torch.no_grad():
        for layer in ours.blocks.modules():
            if convolution.left_to_library(layer):
                layer.weight *= 1 + 2**-10  # which rounding takes back, if it is asked to
    images = torch.randn(4, 3, 8, 8, device=plain.head.weight.device).to(kind)
    with torch.autocast(images.device.type, torch.bfloat16, enabled=cuda):
        wanted = plain(images).logits
        for module in (passes, normalization, convolution):
            monkeypatch.setattr(module, "kernels_for", lambda x: True)
        rounded: list[Tensor] = []

        def counted(weights: list[Tensor]) -> list[Tensor]:
            rounded.extend(weights)
            return [weight.bfloat16().to(kind) for weight in weights]

        monkeypatch.setattr(passes, "round_weights", counted)
        found = ours(images).logits
    pairs = {"logits": (found, wanted)}
    for (name, one), other in zip(ours.named_buffers(), plain.buffers(), strict=True):
        if one.is_floating_point():
            pairs[name] = (one, other)
    assert len(pairs) > 2 * 7
    for name, (one, other) in pairs.items():
        apart = (one - other).norm() / other.norm()
        assert apart < (0.1 if cuda else 1e-4), (name, apart)
    # All but the two that kernels take, per group a shortcut, and the stem's, which comes before.
    convolutions = [m for m in ours.modules() if isinstance(m, nn.Conv2d)]
    assert len(rounded) == len(convolutions) - 3 == 7


def test_operators_are_well_defined() -> None:
    weights = [layer.weight for layer in Layers().layers]
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    for operator, given in (
        (convolution.round_weights, weights),
        (convolution.widen_gradients, [weight.detach().bfloat16() for weight in weights]),
    ):
        torch.library.opcheck(operator, (given,), test_utils=tests)
