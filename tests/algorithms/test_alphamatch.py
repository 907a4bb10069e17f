"""AlphaMatch against loops, and whether its target is a minimum."""

from typing import Any

import numpy as np
import pytest
import torch

from fullmatch.algorithms import AlphaMatch, full
from fullmatch.errors import UserError
from fullmatch.losses import alpha_divergence
from tests.algorithms.agreement import confident_network
from tests.networks import random_batch, tiny_task
from tests.reference import alphamatch as reference

TASK = tiny_task(4)


@pytest.mark.parametrize(("alpha", "strong_views"), [(0.5, 2), (0.3, 1), (1.5, 3)])
def test_agrees_with_the_reference(alpha: float, strong_views: int) -> None:
    torch.manual_seed(0)
    spec = AlphaMatch(
        alpha=alpha,
        beta=1 - alpha,
        strong_views=strong_views,
        weak_weight=strong_views - 1,
        coefficient=0.5,
    )
    algorithm, network = spec.build(TASK), confident_network(4)
    assert len(algorithm.views.unlabeled) == 1 + strong_views
    for _ in range(3):
        batch = random_batch(TASK, algorithm.views, unlabeled=12)
        expected = reference.loss(network, batch, spec)
        actual = algorithm(network, network, batch, torch.tensor(0.5))
        assert float(actual.loss.detach()) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.5), (0.3, 0.7), (1.5, 0.5), (0.5, 1.5)])
def test_target_is_a_minimum(alpha: float, beta: float) -> None:
    torch.manual_seed(0)
    spec = AlphaMatch(alpha=alpha, beta=beta, descents=200)
    algorithm = spec.build(TASK)
    weak, strong = torch.randn(1, 4).log_softmax(1), torch.randn(2, 1, 4).log_softmax(2)
    target = algorithm.target(weak, strong).exp()[0].double().numpy()
    rows = weak.exp()[0].double().numpy(), list(strong.exp()[:, 0].double().numpy())
    actual = reference.objective(target / target.sum(), *rows, spec)
    generator = np.random.default_rng(0)
    for _ in range(100):
        near = target * np.exp(0.05 * generator.normal(size=4))
        assert reference.objective(near / near.sum(), *rows, spec) > actual - 1e-7


def gradient_norms(alpha: float) -> tuple[float, float]:
    """How strongly a confident and an unsure target pull at the same strong prediction."""
    targets = torch.tensor([[0.97, 0.01, 0.01, 0.01], [0.4, 0.3, 0.2, 0.1]]).log()
    norms = []
    for target in targets:
        logits = torch.zeros(1, 4, requires_grad=True)
        alpha_divergence(target[None], logits.log_softmax(dim=1), alpha).backward()
        assert logits.grad is not None
        norms.append(logits.grad.norm().item())
    return norms[0], norms[1]


def test_confident_images_count_for_more_than_in_kullback_leibler() -> None:
    """The purpose of the divergence, which orders below 1 would turn around."""
    ratios = {}
    for alpha in (0.5, 1.0, AlphaMatch().alpha):
        confident, unsure = gradient_norms(alpha)
        ratios[alpha] = confident / unsure
    assert ratios[0.5] < ratios[1.0] < ratios[AlphaMatch().alpha]


def test_a_step_pulls_confident_images_more_than_kullback_leibler() -> None:
    """The same in a whole step: strong views of even probability, one sure and one unsure weak."""
    ratios = {}
    for name, spec in {
        "KL": AlphaMatch(alpha=1.0, beta=0.0, strong_views=1),
        "default": AlphaMatch(strong_views=1),
    }.items():
        weak = torch.tensor([[0.97, 0.01, 0.01, 0.01], [0.4, 0.3, 0.2, 0.1]]).log()
        logits = torch.zeros(2, 4, requires_grad=True)
        target = spec.build(TASK).target(weak, torch.zeros(1, 2, 4).log_softmax(dim=2))
        alpha_divergence(target, logits.log_softmax(dim=1), spec.alpha).backward()
        assert logits.grad is not None
        confident, unsure = logits.grad.norm(dim=1).tolist()
        ratios[name] = confident / unsure
    assert ratios["default"] > ratios["KL"]


def test_the_default_has_a_closed_form() -> None:
    assert AlphaMatch().closed_form
    assert AlphaMatch().alpha > 1


def test_a_few_descent_steps_help() -> None:
    torch.manual_seed(0)
    weak, strong = torch.randn(1, 4).log_softmax(1), torch.randn(2, 1, 4).log_softmax(2)
    rows = weak.exp()[0].double().numpy(), list(strong.exp()[:, 0].double().numpy())
    values = []
    for descents in (0, 5):
        spec = AlphaMatch(alpha=1.5, beta=0.5, descents=descents)
        target = spec.build(TASK).target(weak, strong).exp()[0].double().numpy()
        values.append(reference.objective(target, *rows, spec))
    assert values[1] < values[0]


def test_target_carries_no_gradient_and_alignment_keeps_memory() -> None:
    algorithm = AlphaMatch(align=True).build(TASK)
    weak = torch.randn(5, 4, requires_grad=True).log_softmax(1)
    target = algorithm.target(weak, weak.detach()[None])
    assert not target.requires_grad
    assert algorithm.recent is not None
    assert int(algorithm.recent.batches) == 1
    assert torch.allclose(target.exp().sum(dim=1), torch.ones(5))


def test_weak_view_learns_unless_it_has_no_gradient() -> None:
    torch.manual_seed(0)
    for weak_gradient in (True, False):
        algorithm, network = AlphaMatch().build(TASK), confident_network(4).eval()
        algorithm.weak_gradient = weak_gradient
        batch = random_batch(TASK, algorithm.views)
        weak = batch.unlabeled[0].requires_grad_()
        algorithm(network, network, batch, torch.tensor(0.5)).loss.backward()
        assert (weak.grad is not None) is weak_gradient


@pytest.mark.parametrize(
    "options", [{"alpha": 1.0, "beta": 0.5}, {"alpha": 0.5, "beta": 0.0}, {"strong_views": 0}]
)
def test_rejects_orders_without_a_solution(options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        AlphaMatch(**options).build(TASK)


def test_has_no_full_form() -> None:
    with pytest.raises(UserError):
        full(AlphaMatch())  # type: ignore[type-var]
