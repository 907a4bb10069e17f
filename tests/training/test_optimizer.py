"""Weight decay by parameter, and SGD with Nesterov momentum as published."""

import pytest
import torch
from torch import nn

from fullmatch.models import build_network
from fullmatch.training.optimizer import build_sgd, momentum_buffers, parameter_groups

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", ["wrn-10-1", "resnet18", "convnext_tiny"])
def test_norms_and_biases_do_not_decay(name: str) -> None:
    """Found by type: the norm `downsample.1` of a ResNet has no norm in its name."""
    model = build_network(name, 4, (3, 32, 32))
    decayed, undecayed = parameter_groups(model, weight_decay=0.1)
    assert (decayed["weight_decay"], undecayed["weight_decay"]) == (0.1, 0.0)
    names = {p: n for n, p in model.named_parameters()}
    exempt = {names[p] for p in undecayed["params"]}
    expected = {n for n in names.values() if n.endswith("bias")}
    norms = (nn.BatchNorm2d, nn.LayerNorm)
    expected |= {f"{n}.weight" for n, m in model.named_modules() if isinstance(m, norms)}
    assert exempt == expected
    assert len(decayed["params"]) + len(undecayed["params"]) == len(names)
    if name == "resnet18":
        assert any("downsample" in n or ".1.weight" in n for n in exempt)


def test_parameters_of_several_modules() -> None:
    body, head = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    decayed, undecayed = parameter_groups(body, head, weight_decay=0.1)
    assert len(decayed["params"]) == 2
    assert len(undecayed["params"]) == 4


def test_update_is_nesterov_with_coupled_decay() -> None:
    """v <- m v + g, w <- w - rate (g + m v), with g = gradient + decay w."""
    weight = nn.Parameter(torch.tensor([1.0, -2.0]))
    groups = [{"params": [weight], "weight_decay": 0.1}]
    optimizer, rate = build_sgd(groups, momentum=0.9, nesterov=True, device=CPU)
    expected, velocity = weight.detach().clone().double(), torch.zeros(2).double()
    for step in range(5):
        rate.fill_(0.1 / (step + 1))
        gradient = torch.tensor([0.5, step - 1.0])
        weight.grad = gradient.clone()
        optimizer.step()
        total = gradient.double() + 0.1 * expected
        velocity = 0.9 * velocity + total
        expected = expected - 0.1 / (step + 1) * (total + 0.9 * velocity)
    torch.testing.assert_close(weight.detach().double(), expected, rtol=1e-6, atol=1e-6)


def test_first_step_with_a_zero_buffer_equals_one_without() -> None:
    ours, theirs = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    optimizer, rate = build_sgd([{"params": [ours]}], momentum=0.9, nesterov=True, device=CPU)
    rate.fill_(0.25)
    other = torch.optim.SGD([theirs], lr=0.25, momentum=0.9, nesterov=True)
    for parameter, opt in ((ours, optimizer), (theirs, other)):
        parameter.grad = torch.tensor([1.0, 2.0, 3.0])
        opt.step()
    assert torch.equal(ours, theirs)


def test_no_buffers_without_momentum() -> None:
    weight = nn.Parameter(torch.ones(3))
    optimizer, _ = build_sgd([{"params": [weight]}], momentum=0.0, nesterov=True, device=CPU)
    assert list(momentum_buffers(optimizer)) == []
