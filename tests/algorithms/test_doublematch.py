"""DoubleMatch against its reference; only the strong features have gradient."""

import pytest
import torch
from torch import nn

from fullmatch.algorithms import DoubleMatch
from tests.algorithms.agreement import confident_network
from tests.networks import random_batch, tiny_task
from tests.reference import doublematch as reference

TASK = tiny_task(4)


def test_agrees_with_the_reference() -> None:
    torch.manual_seed(0)
    spec = DoubleMatch(threshold=0.6, features=2.0)
    algorithm, network = spec.build(TASK), confident_network(4)
    head = algorithm.get_submodule("extras.0.head")
    assert isinstance(head, nn.Linear)
    for _ in range(3):
        batch = random_batch(TASK, algorithm.views, unlabeled=12)
        expected = reference.loss(network, head, batch, 0.6, 2.0)
        actual = algorithm(network, network, batch, torch.tensor(0.5))
        assert 0 < actual.metrics["selected"] < 1
        assert float(actual.loss.detach()) == pytest.approx(expected, rel=1e-5)


def test_feature_loss_uses_all_images_and_trains_the_strong_view() -> None:
    torch.manual_seed(0)
    algorithm, network = DoubleMatch(threshold=1.1).build(TASK), confident_network(4).eval()
    batch = random_batch(TASK, algorithm.views)
    weak, strong = (view.requires_grad_() for view in batch.unlabeled)
    objective = algorithm(network, network, batch, torch.tensor(0.5))
    assert objective.metrics["selected"] == 0
    objective.loss.backward()
    head = algorithm.get_parameter("extras.0.head.weight")
    assert weak.grad is not None
    assert strong.grad is not None
    assert head.grad is not None
    assert not weak.grad.any()
    assert strong.grad.flatten(1).any(dim=1).all()
    assert head.grad.any()


def test_head_is_one_linear_layer_registered_once() -> None:
    names = [name for name, _ in DoubleMatch().build(TASK).named_parameters()]
    assert names == ["extras.0.head.weight", "extras.0.head.bias"]
