"""UPS online against a sample-by-sample reference."""

import pytest
import torch

from fullmatch.algorithms import UPS
from fullmatch.errors import UserError
from tests.algorithms.agreement import confident_network
from tests.networks import random_batch, tiny_task
from tests.reference import ups as reference

TASK = tiny_task(4, num_unlabeled=16)


def test_agrees_with_the_reference() -> None:
    torch.manual_seed(0)
    spec = UPS(
        threshold=0.45, samples=4, uncertainty=1.1, negative_threshold=0.2, negative_spread=0.1
    )
    algorithm, network = spec.build(TASK), confident_network(4)
    slow = reference.Reference(spec, TASK.num_unlabeled)
    shares, negatives = [], []
    for step in range(6):
        batch = random_batch(TASK, algorithm.views, unlabeled=8)
        expected = slow.loss(network, batch, step)
        torch.manual_seed(step)
        actual = algorithm(network, network, batch, torch.tensor(0.5))
        assert float(actual.loss.detach()) == pytest.approx(expected, rel=1e-4), step
        shares.append(float(actual.metrics["selected"]))
        negatives.append(float(actual.metrics["unlikely_negative"].detach()))
    assert any(0 < share < 1 for share in shares)
    assert any(value > 0 for value in negatives)
    last = algorithm.get_buffer("labeler.weighting.last_confident").tolist()
    assert last == [4 if label is None else label for label in slow.curriculum.last]
    assert set(last) != {4}


def test_uncertain_images_are_neither_selected_nor_remembered() -> None:
    torch.manual_seed(0)
    algorithm, network = UPS(threshold=0.0, uncertainty=-1.0).build(TASK), confident_network(4)
    batch = random_batch(TASK, algorithm.views)
    objective = algorithm(network, network, batch, torch.tensor(0.5))
    assert objective.metrics["selected"] == 0
    assert (algorithm.get_buffer("labeler.weighting.last_confident") == 4).all()


def test_prediction_is_without_dropout() -> None:
    algorithm, network = UPS().build(TASK), confident_network(4).eval()
    images = torch.randn(5, *TASK.image)
    expected = network(images).logits.softmax(dim=1)
    assert torch.equal(algorithm.predict(network, images), expected)


def test_one_sample_has_no_deviation() -> None:
    with pytest.raises(UserError, match="2 or more"):
        UPS(samples=1).build(TASK)
