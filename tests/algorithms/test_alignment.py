"""Distribution alignment against lists of batch means."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fullmatch.algorithms.alignment import RecentMean, align_to_uniform


def test_recent_mean_includes_the_current_batch() -> None:
    torch.manual_seed(0)
    recent = RecentMean(3, length=4)
    means: list[NDArray[np.float32]] = []
    for _ in range(9):
        probs = torch.randn(5, 3).softmax(dim=1)
        means = [*means, probs.mean(dim=0).numpy()][-4:]
        assert recent(probs).numpy() == pytest.approx(np.mean(means, axis=0), abs=1e-6)


def test_alignment_divides_by_the_mean_and_renormalizes() -> None:
    probs = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    current = torch.tensor([0.5, 0.3, 0.2])
    expected = probs / current
    expected = expected / expected.sum(dim=1, keepdim=True)
    torch.testing.assert_close(align_to_uniform(probs, current), expected, rtol=1e-4, atol=1e-5)
