"""The self-supervised start: finding the other view of an image."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fullmatch.algorithms.self_supervised import TEMPERATURE, FindOtherView
from fullmatch.core import Batch, Network, Objective, Output
from fullmatch.errors import UserError
from tests.networks import TinyNetwork, random_batch, tiny_task


class FlatNetwork(Network):
    """Features are the pixels."""

    def forward(self, images: Tensor) -> Output:
        rows = images.flatten(1)
        return Output(rows, rows)


def objective(algorithm: FindOtherView, network: Network, batch: Batch) -> Objective:
    result: Objective = algorithm(network, network, batch, torch.tensor(0.0))
    return result


def test_the_loss_is_that_of_all_pairs() -> None:
    """Two images whose views are equal, and orthogonal to those of the other one."""
    algorithm = FindOtherView(tiny_task())
    algorithm.head = torch.nn.Identity()  # type: ignore[assignment]
    rows = torch.eye(2)[:, :, None, None]
    batch = random_batch(tiny_task(), algorithm.views)._replace(unlabeled=(rows, rows))
    result = objective(algorithm, FlatNetwork(), batch)
    expected = math.log(1 + 2 * math.exp(-1 / TEMPERATURE))
    torch.testing.assert_close(result.loss, torch.tensor(expected))
    assert result.metrics["view_found"] == 1.0


def test_it_traces_as_one_graph_and_ignores_labels() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    network, algorithm = TinyNetwork(4), FindOtherView(tiny_task())
    batch = random_batch(tiny_task(), algorithm.views)
    assert batch.labeled == ()
    compiled = torch.compile(algorithm.forward, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(
        compiled(network, network, batch, torch.tensor(0.0)), objective(algorithm, network, batch)
    )
    objective(algorithm, network, batch).loss.backward()
    assert network.head.weight.grad is None
    assert any(p.grad is not None and p.grad.any() for p in network.parameters())


def test_features_of_a_frozen_body_are_refused() -> None:
    with pytest.raises(UserError, match=r"training.self_supervised trains on pictures"):
        FindOtherView(replace(tiny_task(), image=(8, 1, 1)))
