"""Negative learning of UPS: the specified value, and 0 without negatives."""

import math

import pytest
import torch

from fullmatch.losses import negative_learning

PROBS = torch.tensor([[0.9, 0.06, 0.03, 0.01]], dtype=torch.float64)


def test_specified_value() -> None:
    negative = torch.tensor([[False, False, True, True]])
    assert float(negative_learning(PROBS.log(), negative)) == pytest.approx(0.0202547717, abs=1e-9)


def test_mean_over_classes_then_over_rows() -> None:
    negative = torch.tensor([[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]]).bool()
    expected = (0.0202547717 - math.log(0.94)) / 2
    actual = float(negative_learning(PROBS.log().repeat(3, 1), negative))
    assert actual == pytest.approx(expected, abs=1e-8)


def test_nothing_negative_is_zero_with_zero_gradient() -> None:
    logits = torch.randn(3, 4, requires_grad=True)
    loss = negative_learning(logits, torch.zeros(3, 4, dtype=torch.bool))
    loss.backward()
    assert float(loss.detach()) == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_stays_finite_where_a_negative_class_is_certain() -> None:
    logits = torch.tensor([[100.0, 0.0, 0.0]], requires_grad=True)
    loss = negative_learning(logits, torch.tensor([[True, False, False]]))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(99.3068528194, rel=1e-6)
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
