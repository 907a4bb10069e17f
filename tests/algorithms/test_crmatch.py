"""CRMatch against its reference, and its gradient through both views."""

from dataclasses import replace

import pytest
import torch

from fullmatch.algorithms import CRMatch
from fullmatch.algorithms.crmatch import rotation_labels
from fullmatch.algorithms.rotation import rotate
from fullmatch.errors import UserError
from tests.algorithms.agreement import confident_network
from tests.networks import random_batch, tiny_task
from tests.reference import crmatch as reference

TASK = tiny_task(4)


def test_agrees_with_the_reference() -> None:
    torch.manual_seed(0)
    algorithm, network = CRMatch(threshold=0.45).build(TASK), confident_network(4)
    for _ in range(3):
        batch = random_batch(TASK, algorithm.views, unlabeled=12)
        expected = reference.loss(network, algorithm, batch, 0.45)
        actual = algorithm(network, network, batch, torch.tensor(0.5))
        assert 0 < actual.metrics["selected"] < 1
        assert float(actual.loss.detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("weak_gradient", [True, False])
def test_distance_has_gradient_through_both_views_unless_disabled(weak_gradient: bool) -> None:
    torch.manual_seed(0)
    spec = CRMatch(threshold=0.0, coefficient=0.0, rotation=0.0, distance=1.0)
    algorithm, network = spec.build(TASK), confident_network(4).eval()
    algorithm.weak_gradient = weak_gradient
    batch = random_batch(TASK, algorithm.views)
    weak, strong = (view.requires_grad_() for view in batch.unlabeled)
    objective = algorithm(network, network, batch, torch.tensor(0.5))
    assert objective.metrics["feature_cosine"] > 0
    objective.loss.backward()
    assert strong.grad is not None
    assert strong.grad.any()
    assert (weak.grad is not None and bool(weak.grad.any())) is weak_gradient


def test_distance_loss_stops_at_a_right_angle() -> None:
    """Minimizing the cosine, not the distance, makes the features equivariant."""
    torch.manual_seed(0)
    algorithm, network = CRMatch(threshold=0.0).build(TASK), confident_network(4)
    batch = random_batch(TASK, algorithm.views)
    same = batch._replace(unlabeled=(batch.unlabeled[0], batch.unlabeled[0]))
    cosine = algorithm(network, network, same, torch.tensor(0.5)).metrics["feature_cosine"]
    assert float(cosine.detach()) == pytest.approx(1.0, abs=1e-5)
    assert algorithm(network, network, batch, torch.tensor(0.5)).metrics["feature_cosine"] >= 0


def test_four_rotations_of_each_image() -> None:
    images = torch.randn(3, 1, 8, 8)
    turns = rotate(images.repeat(4, 1, 1, 1), rotation_labels(3, images.device))
    for turn in range(4):
        assert torch.equal(turns[3 * turn + 1], torch.rot90(images[1], turn, (1, 2)))


def test_images_must_be_square() -> None:
    with pytest.raises(UserError, match="square"):
        CRMatch().build(replace(TASK, image=(1, 8, 6)))
