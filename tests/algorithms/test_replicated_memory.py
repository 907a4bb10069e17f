"""Memory is written from the rows of all processes, so it is equal in each."""

import pytest
import torch
from torch import Tensor

from fullmatch import distributed
from fullmatch.algorithms.sampling import LowEntropyCurriculum
from fullmatch.algorithms.simmatch import LabeledBank
from tests.networks import tiny_task


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """Simulates two processes: gathering appends the rows of the other process."""
    others: list[Tensor] = []
    monkeypatch.setattr(distributed, "gather", lambda rows: torch.cat([rows, others.pop(0)]))
    return others


def test_labeled_bank_stores_the_images_of_both(two: list[Tensor]) -> None:
    bank = LabeledBank(3, 2, momentum=0.0)
    row = torch.tensor([[1.0, 0.0]])
    two += [torch.tensor([0]), -row, torch.tensor([1])]
    bank.write(torch.tensor([2]), row, torch.tensor([0]))
    assert bank.labels.tolist() == [1, -1, 0]
    assert bank.rows[[0, 2]].tolist() == [[-1, 0], [1, 0]]


def test_curriculum_learns_the_labels_of_both(two: list[Tensor]) -> None:
    curriculum = LowEntropyCurriculum(
        0.6, tiny_task(2, num_unlabeled=4), warmup=True, uncertainty=9.0
    )
    two += [torch.tensor([3]), torch.tensor([1]), torch.tensor([True])]
    curriculum.select(torch.tensor([[0.9, 0.1]]), torch.tensor([0]), torch.tensor([0.3]))
    assert curriculum.last_confident.tolist() == [0, 2, 2, 1]
