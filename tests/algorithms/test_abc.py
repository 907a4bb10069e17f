"""ABC: the auxiliary classifier sees all classes about equally often."""

from dataclasses import replace

import pytest
import torch

from fullmatch.algorithms import ABC, FixMatch, full
from fullmatch.algorithms.abc import keep_chances
from tests.algorithms.agreement import confident_network
from tests.networks import TinyNetwork, random_batch, tiny_task
from tests.reference import abc as reference

TASK = replace(tiny_task(4), class_prior=(0.6, 0.2, 0.15, 0.05))


@pytest.mark.parametrize("progress", [0.0, 0.4, 1.0])
def test_agrees_with_the_reference(progress: float) -> None:
    torch.manual_seed(0)
    spec = ABC(threshold=0.7, balanced_threshold=0.7, balanced=0.5)
    algorithm, network = spec.build(TASK), confident_network(4)
    with torch.no_grad():  # so that some images are selected and some are not
        algorithm.get_parameter("head.weight").mul_(12)
    slow = reference.Reference(spec, algorithm, TASK.class_prior)
    shares = []
    for step in range(4):
        batch = random_batch(TASK, algorithm.views, labeled=8, unlabeled=24)
        torch.manual_seed(step)
        expected = slow(network, batch, progress)
        torch.manual_seed(step)
        actual = algorithm(network, network, batch, torch.tensor(progress))
        assert float(actual.loss.detach()) == pytest.approx(expected, rel=1e-5)
        shares.append(float(actual.metrics["balanced_selected"]))
    assert any(0 < share < 1 for share in shares)


def test_keeps_every_class_equally_often() -> None:
    keep = keep_chances(TASK.class_prior)
    torch.testing.assert_close(keep, torch.tensor([1 / 12, 1 / 4, 1 / 3, 1.0]))
    kept = keep * torch.tensor(TASK.class_prior)
    torch.testing.assert_close(kept, torch.full((4,), 0.05))


def test_class_without_labels_leaves_the_others_in() -> None:
    assert keep_chances((0.5, 0.25, 0.25, 0.0)).tolist() == [0.5, 1.0, 1.0, 1.0]


def test_repeated_labels_are_not_balanced_twice() -> None:
    losses = ABC().build(replace(TASK, batch_prior=(0.25,) * 4))
    assert losses.get_buffer("extras.0.keep_label").tolist() == [1.0] * 4
    assert (
        losses.get_buffer("extras.0.keep_guess").tolist() == keep_chances(TASK.class_prior).tolist()
    )


def test_auxiliary_classifier_predicts() -> None:
    torch.manual_seed(0)
    algorithm, network = ABC().build(TASK), TinyNetwork(4).eval()
    images = torch.randn(5, *TASK.image)
    first = algorithm.predict(network, images)
    with torch.no_grad():
        network.head.weight.add_(10.0)
    assert torch.equal(algorithm.predict(network, images), first)
    with torch.no_grad():
        algorithm.get_parameter("head.bias").copy_(torch.tensor([9.0, 0.0, 0.0, 0.0]))
    assert (algorithm.predict(network, images).argmax(dim=1) == 0).all()


def test_without_its_losses_it_trains_like_fixmatch() -> None:
    torch.manual_seed(0)
    network = confident_network(4).eval()
    batch = random_batch(TASK, ABC.views)
    half = torch.tensor(0.5)
    expected = FixMatch().build(TASK)(network, network, batch, half).loss
    actual = ABC(balanced=0.0).build(TASK)(network, network, batch, half).loss
    torch.testing.assert_close(actual, expected)


def test_full_losses_are_added_to_the_network_s_own_classifier() -> None:
    torch.manual_seed(0)
    algorithm, network = full(ABC(balanced=0.0)).build(TASK), confident_network(4)
    objective = algorithm(network, network, random_batch(TASK, ABC.views), torch.tensor(0.5))
    objective.loss.backward()
    gradient = algorithm.get_parameter("head.weight").grad
    assert gradient is not None
    assert not gradient.any()
