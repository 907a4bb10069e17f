"""Two processes with half of the images each compute what one process computes with all."""

import copy
from pathlib import Path

import torch
import torchvision
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.models.kernels.synchronized import SharedNorm, share_statistics
from fullmatch.models.wide_resnet import WideResNet
from tests.two_processes import in_two_processes


def images() -> Tensor:
    return torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def network() -> WideResNet:
    torch.manual_seed(0)
    return WideResNet(5, depth=10, width=1, norm_momentum=0.1)


def trained(body: WideResNet, x: Tensor) -> dict[str, Tensor]:
    """Gradients and statistics after a backward pass of a loss that no mean can hide."""
    logits = body.classify(body.feature_map(x).mean(dim=(2, 3)))
    logits.square().mean().backward()
    distributed.average_gradients(list(body.parameters()))
    found = {name: p.grad for name, p in body.named_parameters() if p.grad is not None}
    return found | {name: b for name, b in body.named_buffers() if b.is_floating_point()}


def half() -> dict[str, Tensor]:
    body = network()
    assert share_statistics(body) == 0
    with distributed.together():
        return trained(body, images().chunk(2)[distributed.rank()])


def test_two_halves_are_a_whole(tmp_path: Path) -> None:
    whole = trained(network(), images())
    first, second = in_two_processes(half, tmp_path)
    assert first.keys() == whole.keys()
    for name, value in whole.items():
        assert torch.equal(first[name], second[name]), name
        torch.testing.assert_close(first[name], value, rtol=2e-4, atol=2e-6, msg=name)


def test_names_parameters_and_a_lone_process_see_no_difference() -> None:
    plain, shared = network(), network()
    share_statistics(shared)
    assert plain.state_dict().keys() == shared.state_dict().keys()
    assert torch.equal(plain.feature_map(images()), shared.feature_map(images()))
    assert torch.equal(plain.norm.running_mean, shared.norm.running_mean)  # type: ignore[arg-type]


def test_norms_of_other_networks() -> None:
    body = torchvision.models.resnet18(num_classes=3)
    before = copy.deepcopy(body)
    assert share_statistics(body) == 0
    assert sum(isinstance(module, SharedNorm) for module in body.modules()) == 20
    x = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(body(x), before(x))
    assert share_statistics(nn.Sequential(nn.BatchNorm1d(2), nn.LayerNorm(2))) == 1
