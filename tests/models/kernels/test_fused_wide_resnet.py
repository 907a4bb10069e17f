"""An accelerated Wide ResNet is the plain one: the same tensors, outputs and gradients."""

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.core import Network
from fullmatch.models import WideResNet, build_network
from fullmatch.models.kernels import accelerate, fused_pass
from fullmatch.models.kernels.fused_pass import is_narrow
from fullmatch.models.kernels.fused_wide_resnet import FusedWideResNet
from tests.models.kernels.tensors import CUDA, DEVICE, DTYPE, relative_distance
from tests.networks import TinyNetwork

FORMS = [
    {"depth": 10, "width": 1, "channels": 1},
    {"depth": 16, "width": 2},
    {"depth": 10, "width": 2, "groups": 4, "first_stride": 2, "conv_bias": True},
    {"depth": 16, "width": 2, "torchssl_blocks": True},
]


def plain_network(**form: object) -> WideResNet:
    torch.manual_seed(0)
    network = WideResNet(5, norm_momentum=0.1, **form)  # type: ignore[arg-type]
    return network.to(memory_format=torch.channels_last)


def train(network: Network, images: Tensor, steps: int = 3) -> dict[str, Tensor]:
    """Logits, gradients and the state after some steps, without the number of batches."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.03, momentum=0.9)
    labels = torch.arange(len(images)) % 5
    results: dict[str, Tensor] = {}
    for step in range(steps):
        logits = network(images).logits
        results[f"logits of step {step}"] = logits.detach()
        optimizer.zero_grad()
        F.cross_entropy(logits, labels).backward()
        optimizer.step()
    gradients = {n: p.grad for n, p in network.named_parameters()}
    results |= {f"gradient of {n}": grad for n, grad in gradients.items() if grad is not None}
    results |= {n: t for n, t in network.state_dict().items() if t.is_floating_point()}
    return results | {"evaluation": network.eval()(images).logits.detach()}


@pytest.mark.parametrize("form", FORMS)
def test_training_on_a_cpu_is_bit_equal(form: dict[str, object]) -> None:
    plain = plain_network(**form)
    accelerated = accelerate(deepcopy(plain))
    images = torch.randn(6, plain.stem.in_channels, 12, 12)
    expected = train(plain, images)
    actual = train(accelerated, images)
    assert isinstance(accelerated, FusedWideResNet)
    assert actual.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(actual[name], tensor), name


def test_tensors_keep_their_names_order_and_layout() -> None:
    plain = plain_network(depth=10)
    accelerated = accelerate(deepcopy(plain))
    for one, other in (
        (accelerated.state_dict(), plain.state_dict()),
        (dict(accelerated.named_parameters()), dict(plain.named_parameters())),
    ):
        assert list(one) == list(other)
        for name in one:
            assert torch.equal(one[name], other[name]), name
            assert one[name].stride() == other[name].stride(), name


def test_networks_by_name_are_accelerated_after_the_same_random_draws() -> None:
    torch.manual_seed(0)
    named = build_network("wrn-10-2", 5, (3, 8, 8)).state_dict()
    torch.manual_seed(0)
    plain = WideResNet(5, depth=10).state_dict()
    assert isinstance(build_network("wrn-10-2", 5, (3, 8, 8)), FusedWideResNet)
    assert all(torch.equal(named[name], plain[name]) for name in plain)


def test_only_plain_wide_resnets_are_changed() -> None:
    tiny = TinyNetwork(3)
    assert accelerate(tiny) is tiny
    assert type(tiny) is TinyNetwork
    assert type(tiny.norm) is nn.BatchNorm2d
    network = plain_network(depth=10)
    assert accelerate(accelerate(network)) is network


@pytest.mark.no_cover  # it would double the time of the interpreter
@pytest.mark.parametrize("torchssl", [False, True])
def test_a_whole_network_by_kernels(torchssl: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs and running statistics agree, and all weights left to cuDNN are rounded."""
    plain = plain_network(depth=10, torchssl_blocks=torchssl).to(DEVICE)
    with torch.no_grad():
        for weight in plain.parameters():
            weight.copy_(weight.bfloat16())
    accelerated = accelerate(deepcopy(plain))
    assert isinstance(accelerated, WideResNet)
    with torch.no_grad():
        for layer in accelerated.blocks.modules():
            if isinstance(layer, nn.Conv2d) and not is_narrow(layer):
                layer.weight *= 1 + 2**-10  # rounding undoes this
    images = torch.randn(4, 3, 8, 8, device=DEVICE).to(DTYPE)
    rounded: list[Tensor] = []

    def round_and_record(weights: list[Tensor]) -> list[Tensor]:
        rounded.extend(weights)
        return [weight.bfloat16().to(DTYPE) for weight in weights]

    with torch.autocast(DEVICE, torch.bfloat16, enabled=CUDA):
        expected = plain(images).logits
        monkeypatch.setattr(fused_pass, "use_kernels", lambda x: True)
        monkeypatch.setattr(fused_pass, "round_weights", round_and_record)
        actual = accelerated(images).logits
    pairs = {"logits": (actual, expected)}
    buffers = dict(plain.named_buffers())
    for name, buffer in accelerated.named_buffers():
        if buffer.is_floating_point():
            pairs[name] = (buffer, buffers[name])
    assert len(pairs) == 1 + 2 * 7
    for name, (one, other) in pairs.items():
        assert relative_distance(one, other) < (0.1 if CUDA else 1e-4), name
    # Not rounded together: the two narrow convolutions, and the stem, which comes before.
    convolutions = [m for m in accelerated.modules() if isinstance(m, nn.Conv2d)]
    assert len(rounded) == len(convolutions) - 3 == 7


@pytest.mark.no_cover  # it would double the time of the interpreter
@pytest.mark.parametrize("torchssl", [False, True])
def test_gradients_of_a_whole_network_by_kernels(
    torchssl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In TorchSSL's form two norms are computed but not used, and get no gradient."""
    plain = plain_network(depth=10, torchssl_blocks=torchssl).to(DEVICE)
    with torch.no_grad():
        for weight in plain.parameters():
            weight.copy_(weight.bfloat16())
    accelerated = accelerate(deepcopy(plain))
    images = torch.randn(2, 3, 8, 8, device=DEVICE).to(DTYPE)
    if not CUDA:  # where weights stay in float32; they are exact in bfloat16 anyway
        monkeypatch.setattr(fused_pass, "round_weights", list)
    gradients: list[dict[str, Tensor | None]] = []
    with torch.autocast(DEVICE, torch.bfloat16, enabled=CUDA):
        for network, kernels in ((plain, False), (accelerated, True)):
            monkeypatch.setattr(fused_pass, "use_kernels", lambda x, kernels=kernels: kernels)
            network(images).logits.float().square().sum().backward()
            gradients.append({name: p.grad for name, p in network.named_parameters()})
    expected, actual = gradients
    unused = [name for name, gradient in actual.items() if gradient is None]
    assert unused == [name for name, gradient in expected.items() if gradient is None]
    assert len(unused) == (4 if torchssl else 0)
    for name, gradient in expected.items():
        other = actual[name]
        if gradient is not None and other is not None:
            assert relative_distance(other, gradient) < (0.5 if CUDA else 0.02), name
