"""UDA: soft labels, and signal annealing."""

import pytest
import torch

from fullmatch.algorithms import UDA
from fullmatch.algorithms.pseudo_labeling import Passes
from fullmatch.algorithms.uda import Annealing, signal_ceiling
from fullmatch.core import Output
from tests.algorithms.agreement import assert_agrees
from tests.networks import random_batch, tiny_task
from tests.reference import thresholds


@pytest.mark.parametrize("annealing", ["none", "linear", "exp", "log"])
def test_agrees_with_the_reference(annealing: Annealing) -> None:
    assert_agrees(UDA(annealing=annealing), thresholds.UDA)


def test_selects_by_the_prediction_before_sharpening() -> None:
    task = tiny_task(2)
    labeler = UDA().build(task).labeler
    probs = torch.tensor([[0.79, 0.21], [0.8001, 0.1999]])
    output = Output(probs.log(), torch.zeros(2, 16))
    batch = random_batch(task, UDA.views, unlabeled=2)
    pseudo = labeler(Passes(output, output, (output,), None), batch, torch.tensor(0.5))
    assert pseudo.target[0].max() > 0.8  # would pass after sharpening
    torch.testing.assert_close(pseudo.weight, torch.tensor([0.0, 1.0]))
    torch.testing.assert_close(pseudo.probs, probs)
    expected = probs ** (1 / 0.4)
    torch.testing.assert_close(pseudo.target, expected / expected.sum(dim=1, keepdim=True))


def test_ceiling_rises_from_chance_to_certainty() -> None:
    middles: dict[Annealing, float] = {"linear": 0.55, "exp": 0.1738765, "log": 0.9261235}
    for annealing, middle in middles.items():
        start, half, end = signal_ceiling(torch.tensor([0.0, 0.5, 1.0]), 10, annealing)
        torch.testing.assert_close(half, torch.tensor(middle))
        assert 0.1 <= start < 0.11
        assert 0.99 < end <= 1.0
