"""Training on the labels only."""

import math

import pytest
import torch

from fullmatch.algorithms import Supervised
from tests.algorithms.fixed_views import batch, echo_task, objective


def test_is_the_cross_entropy_of_the_labels_only() -> None:
    views = batch([[0.5, 0.3, 0.2]], [[0.1, 0.1, 0.8]])._replace(unlabeled=())
    loss, metrics = objective(Supervised().build(echo_task(3)), views)
    assert loss.item() == pytest.approx(-math.log(0.8), abs=1e-9)
    assert torch.equal(metrics["supervised"], loss)
    assert Supervised().views.unlabeled == ()
