"""NS3L's loss: the specified value and edge cases."""

import torch

from fullmatch.losses import low_probability_negative


def test_logarithm_of_the_sum() -> None:
    probs = torch.tensor([[0.9, 0.06, 0.03, 0.01]], dtype=torch.float64)
    loss = low_probability_negative(probs.log(), probs, 0.04)
    expected = torch.tensor(0.0408219945, dtype=torch.float64)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-10)


def test_a_row_with_only_unlikely_classes_adds_zero() -> None:
    logits = torch.zeros(2, 50, requires_grad=True)
    loss = low_probability_negative(logits, torch.full((2, 50), 0.02), 0.04)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_a_confidently_wrong_prediction_stays_finite() -> None:
    logits = torch.tensor([[0.0, 100.0]], requires_grad=True)
    loss = low_probability_negative(logits, torch.tensor([[0.99, 0.01]]))
    loss.backward()
    torch.testing.assert_close(loss, torch.tensor(1e-8).log().neg())
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_weighted_rows() -> None:
    logits, probs = torch.randn(3, 5), torch.randn(3, 5).softmax(dim=1)
    rows = [low_probability_negative(logits[i : i + 1], probs[i : i + 1], 0.2) for i in range(3)]
    actual = low_probability_negative(logits, probs, 0.2, torch.tensor([1.0, 0.0, 0.5]))
    torch.testing.assert_close(actual, (rows[0] + 0.5 * rows[2]) / 3)
