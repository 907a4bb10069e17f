"""The family's module: its passes, its metrics and its extras."""

from typing import Any

import pytest
import torch
from torch import nn

from fullmatch.algorithms import FixMatch
from fullmatch.algorithms.passes import linear_ramp, run_jointly, run_separately
from fullmatch.algorithms.pseudo_labeling import (
    FixedThreshold,
    Labeler,
    PseudoLabeling,
    PseudoLabels,
    Step,
    usage_metrics,
)
from fullmatch.core import Network, Objective, Views
from tests.algorithms.fixed_views import batch, echo_task, objective
from tests.networks import TinyNetwork, random_batch, tiny_task


class Watched(TinyNetwork):
    """Records the size of every pass, and whether gradients were enabled."""

    def __init__(self) -> None:
        super().__init__(4)
        self.passes: list[tuple[int, bool]] = []

    def feature_map(self, images: torch.Tensor) -> torch.Tensor:
        self.passes.append((len(images), torch.is_grad_enabled()))
        return super().feature_map(images)


def watched(*, weak_gradient: bool) -> Watched:
    network, algorithm = Watched(), FixMatch().build(tiny_task())
    algorithm.weak_gradient = weak_gradient
    algorithm(network, network, random_batch(tiny_task(), Views()), torch.tensor(0.0))
    return network


def test_one_pass_for_all_views() -> None:
    assert watched(weak_gradient=True).passes == [(4 + 6 + 6, True)]


def test_weak_views_in_a_separate_pass() -> None:
    assert watched(weak_gradient=False).passes == [(6, False), (4 + 6, True)]


def test_extras_add_to_loss_and_metrics() -> None:
    class Extra(nn.Module):
        def forward(self, step: Step[Any]) -> Objective:
            return Objective(step.passes.strong[0].logits.sum() * 0 + 5.0, {"five": torch.ones(())})

    views = batch([[0.6, 0.4]], [[0.5, 0.5]])
    labeler = Labeler(FixedThreshold(0.95))
    plain = objective(PseudoLabeling(labeler, views=Views()), views)
    added = objective(PseudoLabeling(labeler, [Extra()], views=Views()), views)
    assert added.loss.item() == plain.loss.item() + 5
    assert set(added.metrics) == {*plain.metrics, "five"}


def test_usage_metrics_count_known_labels_by_rank() -> None:
    """Of eleven classes the true one is first, sixth, last, and unknown."""
    row = [0.2 - 0.01 * place for place in range(11)]
    row = [value / sum(row) for value in row]
    views = batch([row] * 4, [row] * 4, hidden=[0, 5, 10, -1])
    metrics = objective(FixMatch(threshold=0.1).build(echo_task(11)), views).metrics
    assert metrics["unlabeled_top1"].tolist() == [1, 3]
    assert metrics["unlabeled_top5"].tolist() == [1, 3]
    assert metrics["unlabeled_top9"].tolist() == [2, 3]
    assert metrics["pseudo_label_accuracy"].tolist() == [1, 3]
    few = objective(FixMatch().build(echo_task(3)), batch([[0.5, 0.3, 0.2]], [[0.5, 0.3, 0.2]]))
    assert "unlabeled_top1" in few.metrics
    assert "unlabeled_top5" not in few.metrics


@pytest.mark.parametrize("value", [0.25, float("nan")])
def test_constant_predictions_are_never_correct(value: float) -> None:
    label = torch.zeros(3, dtype=torch.int64)
    pseudo = PseudoLabels(torch.full((3, 6), value), label, label, torch.ones(3))
    metrics = usage_metrics(pseudo, label)
    assert metrics["unlabeled_top1"].tolist() == [0, 3]
    assert metrics["unlabeled_top5"].tolist() == [0, 3]


def test_run_jointly_is_one_pass() -> None:
    torch.manual_seed(0)
    network: Network = TinyNetwork(4)
    views = [torch.randn(size, 1, 8, 8) for size in (2, 3, 1)]
    whole = network(torch.cat(views))
    parts = run_jointly(network, views)
    assert [len(part.logits) for part in parts] == [2, 3, 1]
    assert torch.equal(torch.cat([part.logits for part in parts]), whole.logits)
    assert torch.equal(torch.cat([part.features for part in parts]), whole.features)


def test_run_separately_does_not_change_running_statistics() -> None:
    torch.manual_seed(0)
    network = TinyNetwork(4)
    images = torch.randn(6, 1, 8, 8)
    before = {name: value.clone() for name, value in network.named_buffers()}
    actual = run_separately(network, images)
    assert all(torch.equal(value, before[name]) for name, value in network.named_buffers())
    actual.logits.sum().backward()
    assert network.stem.weight.grad is not None
    assert torch.equal(actual.logits, network(images).logits)  # with the statistics of the batch


def test_ramp() -> None:
    values = [linear_ramp(torch.tensor(at), 0.4).item() for at in (0.0, 0.2, 0.4, 1.0)]
    assert values == [0.0, 0.5, 1.0, 1.0]
    assert [linear_ramp(torch.tensor(at), 0.0).item() for at in (0.0, 0.5)] == [1.0, 1.0]
