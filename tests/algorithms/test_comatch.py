"""CoMatch against lists and loops, before and after its bank is full."""

import pytest
import torch

from fullmatch.algorithms import CoMatch, full
from tests.algorithms.agreement import confident_network
from tests.networks import random_batch, tiny_task
from tests.reference import comatch as reference

TASK = tiny_task(4)


def test_agrees_with_the_reference() -> None:
    """Rows wrap around the end of the bank: 32 places, 12 rows per step."""
    torch.manual_seed(0)
    spec = CoMatch(threshold=0.6, bank=32, alignment=3, cut=0.5, width=8, smoothing=0.6)
    algorithm, network = spec.build(TASK), confident_network(4, scale=40)
    slow = reference.Reference(spec, algorithm.head)
    selected = []
    for step in range(7):
        batch = random_batch(TASK, algorithm.views, labeled=4, unlabeled=8)
        expected = slow.loss(network, batch)
        actual = algorithm(network, network, batch, torch.tensor(0.5))
        assert float(actual.loss.detach()) == pytest.approx(expected, rel=1e-4), step
        assert bool(algorithm.bank.is_full()) is (step >= 2)
        selected.append(float(actual.metrics["selected"]))
    assert any(0 < share < 1 for share in selected)
    oldest = int(algorithm.bank.written) % 32
    rows = algorithm.bank.rows.roll(-oldest, 0).numpy()
    for row, (key, vote) in zip(rows, slow.bank, strict=True):
        assert row[:8] == pytest.approx(key, abs=1e-5)
        assert row[8:] == pytest.approx(vote, abs=1e-4)


def test_bank_holds_labels_before_smoothing_and_one_hots_of_labeled_images() -> None:
    torch.manual_seed(0)
    spec = CoMatch(bank=12, smoothing=0.0)
    algorithm, network = spec.build(TASK), confident_network(4)
    for _ in range(2):
        batch = random_batch(TASK, algorithm.views, labeled=4, unlabeled=8)
        smoothed = algorithm.passes(network, batch).heads[0]
    votes = algorithm.bank.rows[:, 64:]
    assert torch.equal(votes[8:].argmax(dim=1), batch.labels)
    assert torch.equal(votes[8:].sum(dim=1), votes[8:].amax(dim=1))
    assert not torch.allclose(votes[:8], smoothed)


def test_targets_are_soft_and_full_ranks_by_them() -> None:
    torch.manual_seed(0)
    algorithm = full(CoMatch(threshold=0.3)).build(TASK)
    batch = random_batch(TASK, algorithm.views)
    passes = algorithm.passes(confident_network(4), batch)
    pseudo = algorithm.labeler(passes, batch, torch.tensor(0.0))
    assert pseudo.target is pseudo.probs is passes.heads[0]
    assert torch.equal(pseudo.label, pseudo.probs.argmax(dim=1))
    assert torch.equal(pseudo.weight, (pseudo.probs.amax(dim=1) >= 0.3).float())
