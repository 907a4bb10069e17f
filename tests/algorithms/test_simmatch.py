"""SimMatch against a dictionary of labeled images."""

import pytest
import torch

from fullmatch.algorithms import SimMatch
from fullmatch.algorithms.simmatch import LabeledBank
from tests.algorithms.agreement import confident_network
from tests.networks import random_batch, tiny_task
from tests.reference import simmatch as reference

TASK = tiny_task(4, num_labeled=8)


def test_agrees_with_the_reference() -> None:
    """If a labeled image is in a batch twice, the last one counts."""
    torch.manual_seed(0)
    spec = SimMatch(threshold=0.6, alignment=3, width=8, smoothing=0.7, instances=2.0)
    algorithm, network = spec.build(TASK), confident_network(4, scale=40)
    slow = reference.Reference(spec, algorithm)
    labels = torch.randint(4, (8,))
    wholes = []
    selected = []
    for step in range(6):
        batch = random_batch(TASK, algorithm.views, labeled=4, unlabeled=8)
        index = torch.tensor([[0, 1, 2, 3], [4, 5, 6, 7], [2, 0, 2, 2]])[step % 3]
        batch = batch._replace(labeled_index=index, labels=labels[index])
        wholes.append(bool(algorithm.bank.complete()))
        expected = slow.loss(network, batch)
        actual = algorithm(network, network, batch, torch.tensor(0.5))
        assert float(actual.loss.detach()) == pytest.approx(expected, rel=1e-4), step
        assert bool(actual.metrics["instances"] > 0) is wholes[-1]
        selected.append(float(actual.metrics["selected"]))
    assert any(0 < share < 1 for share in selected)
    assert wholes == [False, False, True, True, True, True]
    assert algorithm.bank.labels.tolist() == [slow.labels[k] for k in range(8)]
    for row, expected_row in zip(algorithm.bank.rows.numpy(), slow.rows, strict=True):
        assert row == pytest.approx(expected_row, abs=1e-5)


def test_bank_rows_are_unit_vectors() -> None:
    """Normalizing over the batch, as one code base does, would break both."""
    torch.manual_seed(0)
    bank = LabeledBank(6, 16, momentum=0.7)
    rows = torch.nn.functional.normalize(torch.randn(3, 16), dim=1)
    before = bank.rows.clone()
    bank.write(torch.tensor([5, 1, 2]), rows, torch.tensor([0, 1, 2]))
    torch.testing.assert_close(bank.rows.norm(dim=1), torch.ones(6))
    torch.testing.assert_close(
        bank.rows[5], torch.nn.functional.normalize(0.7 * before[5] + 0.3 * rows[0], dim=0)
    )
    assert torch.equal(bank.rows[0], before[0])
    assert bank.labels.tolist() == [-1, 1, 2, -1, -1, 0]


def test_momentum_zero_overwrites() -> None:
    bank = LabeledBank(3, 4, momentum=0.0)
    rows = torch.nn.functional.normalize(torch.randn(2, 4), dim=1)
    bank.write(torch.tensor([1, 1]), rows, torch.tensor([0, 3]))
    torch.testing.assert_close(bank.rows[1], rows[1])
    assert bank.labels.tolist() == [-1, 3, -1]


def test_backward_works_after_the_bank_changes() -> None:
    torch.manual_seed(0)
    algorithm, network = (
        SimMatch(threshold=0.0).build(tiny_task(4, num_labeled=4)),
        confident_network(4),
    )
    task = tiny_task(4, num_labeled=4)
    for _ in range(2):
        batch = random_batch(task, algorithm.views, labeled=4)
        algorithm(network, network, batch, torch.tensor(0.5)).loss.backward()
    gradient = algorithm.get_parameter("head.layers.0.weight").grad
    assert gradient is not None
    assert gradient.any()
