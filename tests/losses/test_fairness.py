"""FreeMatch's fairness loss: its values, and that only selected images count."""

import torch

from fullmatch.losses import self_adaptive_fairness


def test_fairness_is_minus_a_cross_entropy() -> None:
    even = torch.full((3,), 1 / 3)
    spread = 3 * torch.eye(3)
    concentrated = torch.tensor([[3.0, 0.0, 0.0]] * 3)
    values = [self_adaptive_fairness(x, torch.ones(3), even, even) for x in (spread, concentrated)]
    # The concentrated predictions only ever have one argmax.
    expected = [torch.tensor(1 / 3).log(), torch.tensor(1e-12).log() * 2 / 3]
    torch.testing.assert_close(values, expected)


def test_fairness_has_a_gradient() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 0.1]], requires_grad=True)
    even = torch.tensor([0.5, 0.5])
    self_adaptive_fairness(logits, torch.ones(2), even, even).backward()
    assert logits.grad is not None
    assert logits.grad.any()


def test_fairness_is_zero_if_nothing_is_selected() -> None:
    logits = torch.randn(4, 3, requires_grad=True)
    even = torch.full((3,), 1 / 3)
    loss = self_adaptive_fairness(logits, torch.zeros(4), even, even)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert not logits.grad.any()


def test_fairness_ignores_unselected_rows() -> None:
    logits, prior = torch.randn(6, 3), torch.tensor([0.5, 0.3, 0.2])
    weight = torch.tensor([1.0, 0, 1, 1, 0, 0])
    selected = logits[weight.bool()]
    torch.testing.assert_close(
        self_adaptive_fairness(logits, weight, prior, prior),
        self_adaptive_fairness(selected, torch.ones(3), prior, prior),
    )
