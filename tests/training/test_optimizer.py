"""Weight decay by parameter, and SGD with Nesterov momentum as published."""

from typing import Any

import pytest
import torch
from torch import nn

from fullmatch.config import OptimizerConfig
from fullmatch.errors import UserError
from fullmatch.models import build_network
from fullmatch.training.optimizer import (
    build_optimizer,
    fill_buffers,
    optimizer_buffers,
    parameter_groups,
)

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
    optimizer, (rate,) = build_optimizer(groups, OptimizerConfig(), CPU)
    expected, velocity = weight.detach().clone().double(), torch.zeros(2).double()
    for step in range(5):
        rate.fill(0.1 / (step + 1))
        gradient = torch.tensor([0.5, step - 1.0])
        weight.grad = gradient.clone()
        optimizer.step()
        total = gradient.double() + 0.1 * expected
        velocity = 0.9 * velocity + total
        expected = expected - 0.1 / (step + 1) * (total + 0.9 * velocity)
    torch.testing.assert_close(weight.detach().double(), expected, rtol=1e-6, atol=1e-6)


def test_first_step_with_a_zero_buffer_equals_one_without() -> None:
    ours, theirs = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    optimizer, (rate,) = build_optimizer([{"params": [ours]}], OptimizerConfig(), CPU)
    rate.fill(0.25)
    other = torch.optim.SGD([theirs], lr=0.25, momentum=0.9, nesterov=True)
    for parameter, opt in ((ours, optimizer), (theirs, other)):
        parameter.grad = torch.tensor([1.0, 2.0, 3.0])
        opt.step()
    assert torch.equal(ours, theirs)


def test_no_buffers_without_momentum() -> None:
    weight = nn.Parameter(torch.ones(3))
    optimizer, _ = build_optimizer([{"params": [weight]}], OptimizerConfig(momentum=0.0), CPU)
    assert list(optimizer_buffers(optimizer)) == []


def test_adamw_equals_torch_with_numbers_as_rates() -> None:
    """Decay is decoupled, and learning rates are tensors that change between steps."""
    ours, theirs = nn.Parameter(torch.tensor([1.0, -2.0])), nn.Parameter(torch.tensor([1.0, -2.0]))
    config = OptimizerConfig(name="adamw", weight_decay=0.1)
    groups = parameter_groups(Holder(ours), weight_decay=0.1)
    optimizer, (rate,) = build_optimizer(groups, config, CPU)
    other = torch.optim.AdamW([theirs], betas=(0.9, 0.999), weight_decay=0.1)
    for step in range(5):
        rate.fill(0.1 / (step + 1))
        other.param_groups[0]["lr"] = 0.1 / (step + 1)
        for parameter, opt in ((ours, optimizer), (theirs, other)):
            parameter.grad = torch.tensor([0.5, step - 1.0])
            opt.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_adamw_has_all_buffers_before_the_first_step() -> None:
    """So that a checkpoint of step 0 has the same names as a later one."""
    weight = nn.Parameter(torch.ones(3))
    config = OptimizerConfig(name="adamw")
    optimizer, (rate,) = build_optimizer([{"params": [weight]}], config, CPU)
    before = [name for _, name, _ in optimizer_buffers(optimizer)]
    rate.fill(0.1)
    weight.grad = torch.ones(3)
    optimizer.step()
    assert before == ["mean", "square", "age"]
    assert [name for _, name, _ in optimizer_buffers(optimizer)] == before


def test_scaled_parameters_learn_at_their_own_rate() -> None:
    slow, fast = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    groups = parameter_groups(Holder(slow), Holder(fast), weight_decay=0.0, scales={slow: 0.25})
    optimizer, rates = build_optimizer(groups, OptimizerConfig(momentum=0.0), CPU)
    for rate in rates:
        rate.fill(0.5)
    for parameter in (slow, fast):
        parameter.grad = torch.ones(1)
    optimizer.step()
    assert (slow.item(), fast.item()) == (-0.125, -0.5)


class Holder(nn.Module):
    def __init__(self, weight: nn.Parameter) -> None:
        super().__init__()
        self.weight = weight


@pytest.mark.parametrize(
    ("name", "options"),
    [("torch.optim:RMSprop", ("alpha=0.9",)), ("torch.optim:NAdam", ()), ("torch.optim:SGD", ())],
)
def test_an_optimizer_by_its_class(name: str, options: tuple[str, ...]) -> None:
    """Built with the settings it knows; what it creates in its first step can be filled in."""
    config = OptimizerConfig(name=name, options=options, weight_decay=0.1, momentum=0.8)

    def build(weight: nn.Parameter) -> torch.optim.Optimizer:
        groups = [{"params": [weight], "weight_decay": 0.1, "scale": 0.5}]
        optimizer, (rate,) = build_optimizer(groups, config, CPU)
        rate.fill(0.1)
        assert optimizer.param_groups[0]["lr"] == 0.05
        return optimizer

    def step(weight: nn.Parameter, optimizer: torch.optim.Optimizer) -> None:
        weight.grad = weight.detach() ** 2
        optimizer.step()

    weight = nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = build(weight)
    step(weight, optimizer)
    saved = {f"{kind}.w": tensor.clone() for _, kind, tensor in optimizer_buffers(optimizer)}
    other = nn.Parameter(weight.detach().clone())
    resumed = build(other)
    fill_buffers(resumed, {other: "w"}, saved)
    step(weight, optimizer)
    step(other, resumed)
    assert torch.equal(weight, other)
    assert len(saved) > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "adamv"}, "optimizer.name is 'adamv', .*; did you mean 'adamw'"),
        ({"options": ("eps=1",)}, "optimizer.options is for an optimizer named by module:Class"),
        ({"name": "torch.optim:Adma"}, "has no optimizer 'Adma'; did you mean 'Adam"),
        ({"name": "nowhere:Adam"}, "cannot import 'nowhere' for the optimizer"),
        ({"name": "torch:nn"}, "torch:nn is not a torch.optim.Optimizer"),
        ({"name": "torch.optim:Adam", "options": ("alpha=1",)}, "does not take these settings"),
        ({"name": "torch.optim:Adam", "options": ("epz=1",)}, "options; did you mean 'eps'"),
        ({"name": "torch.optim:Adam", "options": ("alpha",)}, "expected name=value"),
    ],
)
def test_a_wrong_optimizer_is_one_line(settings: Any, message: str) -> None:
    weight = nn.Parameter(torch.zeros(2))
    with pytest.raises(UserError, match=message):
        build_optimizer([{"params": [weight]}], OptimizerConfig(**settings), CPU)
