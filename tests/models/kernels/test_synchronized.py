"""Two processes with half of the images each compute what one process computes with all."""

import copy
from pathlib import Path

import pytest
import torch
import torchvision
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.models import WideResNet
from fullmatch.models.kernels import accelerate, synchronize_batch_norms
from fullmatch.models.kernels.synchronized import SynchronizedBatchNorm
from tests.two_processes import in_two_processes


def images() -> Tensor:
    return torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def network() -> WideResNet:
    torch.manual_seed(0)
    body = WideResNet(5, depth=10, width=1, norm_momentum=0.1)
    accelerate(body)
    return body


def train_once(body: WideResNet, x: Tensor) -> dict[str, Tensor]:
    """Gradients and statistics after a backward pass; the loss is not linear in the images."""
    logits = body.classify(body.feature_map(x).mean(dim=(2, 3)))
    logits.square().mean().backward()
    gradients = {
        name: distributed.mean(p.grad) for name, p in body.named_parameters() if p.grad is not None
    }
    return gradients | {name: b for name, b in body.named_buffers() if b.is_floating_point()}


def train_on_half() -> dict[str, Tensor]:
    body = network()
    assert synchronize_batch_norms(body) == 0
    return train_once(body, distributed.own_rows(images()))


def test_two_halves_equal_the_whole(tmp_path: Path) -> None:
    whole = train_once(network(), images())
    first, second = in_two_processes(train_on_half, tmp_path)
    assert first.keys() == whole.keys()
    for name, value in whole.items():
        assert torch.equal(first[name], second[name]), name
        torch.testing.assert_close(first[name], value, rtol=2e-4, atol=2e-6, msg=name)


def test_names_and_results_of_a_single_process_are_unchanged() -> None:
    plain, synchronized = network(), network()
    synchronize_batch_norms(synchronized)
    assert plain.state_dict().keys() == synchronized.state_dict().keys()
    assert torch.equal(plain.feature_map(images()), synchronized.feature_map(images()))
    mean, other = plain.norm.running_mean, synchronized.norm.running_mean
    assert mean is not None
    assert other is not None
    assert torch.equal(mean, other)


def test_eager_steps_on_a_gpu_have_the_one_of_torch() -> None:
    body = network()
    assert synchronize_batch_norms(body, by_torch=True) == 0
    norms = [module for module in body.modules() if isinstance(module, nn.SyncBatchNorm)]
    assert len(norms) == 7
    assert body.eval()(images()).logits.shape == (8, 5)


def test_batch_norms_of_other_networks() -> None:
    body = torchvision.models.resnet18(num_classes=3)
    before = copy.deepcopy(body)
    assert synchronize_batch_norms(body) == 0
    assert sum(isinstance(module, SynchronizedBatchNorm) for module in body.modules()) == 20
    x = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(body(x), before(x))


@pytest.mark.parametrize(
    ("layers", "unsynchronized"),
    [
        ((nn.BatchNorm1d(2), nn.LayerNorm(2)), 1),
        ((nn.BatchNorm2d(2, track_running_stats=False),), 1),
        ((nn.BatchNorm2d(2),), 0),
    ],
)
def test_other_batch_norms_are_counted(layers: tuple[nn.Module, ...], unsynchronized: int) -> None:
    assert synchronize_batch_norms(nn.Sequential(*layers)) == unsynchronized
