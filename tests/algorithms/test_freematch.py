"""FreeMatch: thresholds from the running means."""

import torch

from fullmatch.algorithms import FreeMatch
from fullmatch.algorithms.freematch import SelfAdaptiveThreshold
from tests.algorithms.agreement import assert_agrees
from tests.reference import thresholds


def test_agrees_with_the_reference() -> None:
    assert_agrees(FreeMatch(momentum=0.6, fairness=0.5), thresholds.FreeMatch)
    assert_agrees(FreeMatch(momentum=0.6, floor=0.9, threshold=0.95), thresholds.FreeMatch)


def test_thresholds_follow_the_mean_prediction() -> None:
    adaptive = SelfAdaptiveThreshold(FreeMatch(), 3)
    adaptive.confidence.fill_(0.8)
    adaptive.probs.copy_(torch.tensor([0.5, 0.3, 0.2]))
    torch.testing.assert_close(adaptive.thresholds(), torch.tensor([0.8, 0.48, 0.32]))


def test_batch_counts_in_its_own_thresholds() -> None:
    adaptive = SelfAdaptiveThreshold(FreeMatch(momentum=0.0), 2)
    weight = adaptive(torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.75, 0.25]]), torch.arange(3))
    torch.testing.assert_close(adaptive.confidence, torch.tensor(0.75))
    torch.testing.assert_close(weight, torch.tensor([1.0, 0.0, 1.0]))
