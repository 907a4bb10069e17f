"""Mixup blends each image with one partner, and the image itself dominates."""

from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor
from torch.nn import functional as F

from fullmatch.augment.mix import draw_mixup, mixup

CPU = torch.device("cpu")


def test_images_and_targets_share_one_weight() -> None:
    torch.manual_seed(1)
    images, targets = torch.rand(6, 3, 4, 4), F.one_hot(torch.arange(6)).float()
    permutation = torch.tensor([1, 2, 3, 4, 5, 0])
    draws = draw_mixup(0.75, 6, CPU)._replace(partners=permutation)
    mixed, mixed_targets = mixup(images, targets, draws)
    weight = mixed_targets[0, 0]
    assert 0.5 <= weight <= 1
    torch.testing.assert_close(mixed, weight * images + (1 - weight) * images[permutation])
    torch.testing.assert_close(mixed_targets.sum(dim=1), torch.ones(6))
    torch.testing.assert_close(mixed_targets.diagonal(), weight.expand(6))


@pytest.mark.parametrize("alpha", [0.5, 0.75, 16.0])
def test_weight_is_the_larger_part_of_a_beta_draw(alpha: float) -> None:
    torch.manual_seed(0)
    weights = torch.stack([draw_mixup(alpha, 2, CPU).weight for _ in range(2000)])

    def cdf(weight: Any) -> Any:
        return stats.beta.cdf(weight, alpha, alpha) - stats.beta.cdf(1 - weight, alpha, alpha)

    assert stats.kstest(weights.double().numpy(), cdf).pvalue > 0.01


def test_partners_are_a_random_permutation() -> None:
    torch.manual_seed(3)
    _, mixed = mixup(torch.rand(50, 1), torch.eye(50), draw_mixup(0.75, 50, CPU))
    torch.testing.assert_close(mixed.sum(dim=0), torch.ones(50))  # every image is a partner once
    assert (mixed.diagonal() < 1).sum() > 40


def test_other_draws_are_uniform() -> None:
    torch.manual_seed(5)
    others = draw_mixup(0.75, 3, CPU, others=5000).others
    assert others.min() >= 0
    assert others.max() < 1
    assert stats.kstest(others.double().numpy(), "uniform").pvalue > 0.01


def test_traces_as_one_graph() -> None:
    images, targets = torch.rand(6, 3, 4, 4), torch.eye(6)

    def mixed() -> tuple[Tensor, Tensor]:
        return mixup(images, targets, draw_mixup(0.75, 6, CPU))

    torch.manual_seed(4)
    eager = mixed()
    torch.manual_seed(4)
    compiled = torch.compile(mixed, fullgraph=True, backend="aot_eager")()
    for ours, expected in zip(compiled, eager, strict=True):
        assert torch.equal(ours, expected)


def test_alpha_must_be_positive() -> None:
    with pytest.raises(ValueError, match="alpha must be greater than 0; got 0"):
        draw_mixup(0, 2, CPU)
