"""Cross-entropy over all rows, distances, sharpening and entropy, with edge cases."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from fullmatch.losses import cross_entropy, entropy, sharpen, squared_distance


@pytest.fixture
def logits() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(6, 4, dtype=torch.float64, requires_grad=True)


LABELS = torch.tensor([0, 3, 1, 2, 2, 0])


def test_labels_and_one_hot_probabilities_agree(logits: Tensor) -> None:
    weight = torch.rand(6)
    for rows in (None, weight):
        hard = cross_entropy(logits, LABELS, rows)
        soft = cross_entropy(logits, F.one_hot(LABELS, 4).float(), rows)
        torch.testing.assert_close(hard, soft)


def test_mean_is_over_all_rows(logits: Tensor) -> None:
    each = -logits.log_softmax(1)[torch.arange(6), LABELS]
    torch.testing.assert_close(cross_entropy(logits, LABELS), each.mean())
    chosen = torch.tensor([True, False, False, True, False, False])
    torch.testing.assert_close(cross_entropy(logits, LABELS, chosen), (each[0] + each[3]) / 6)
    weight = torch.linspace(0, 1, 6)
    torch.testing.assert_close(cross_entropy(logits, LABELS, weight), (each * weight).mean())


def test_soft_targets_by_hand() -> None:
    logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
    target = torch.tensor([[0.25, 0.75, 0.0]])
    expected = 0.25 * math.log(2) + 0.75 * math.log(4)
    assert cross_entropy(logits, target).item() == pytest.approx(expected)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("soft", [False, True])
def test_rows_of_weight_zero_add_exactly_zero(logits: Tensor, bad: float, soft: bool) -> None:
    target = torch.rand(6, 4, dtype=torch.float64).softmax(1) if soft else LABELS
    weight = torch.tensor([1, 0.5, 0, 1, 0, 1], dtype=torch.float64)
    expected = cross_entropy(logits, target, weight)
    (clean,) = torch.autograd.grad(expected, logits)
    poisoned = logits.detach().clone()
    poisoned[2], poisoned[4, 1] = bad, bad
    if soft:
        target[2] = bad
    poisoned.requires_grad_()
    actual = cross_entropy(poisoned, target, weight)
    (gradient,) = torch.autograd.grad(actual, poisoned)
    assert actual == expected
    assert torch.equal(gradient, clean)
    assert gradient[[2, 4]].abs().max() == 0


def test_an_empty_batch_is_zero_with_a_gradient() -> None:
    logits = torch.zeros(0, 3, requires_grad=True)
    for target in (torch.zeros(0, dtype=torch.int64), torch.zeros(0, 3)):
        loss = cross_entropy(logits, target, torch.zeros(0))
        assert loss.item() == 0
        assert loss.requires_grad
        loss.backward()
    assert squared_distance(logits, logits).item() == 0
    assert entropy(logits).item() == 0


def test_bfloat16_is_computed_in_float32(logits: Tensor) -> None:
    low = logits.detach().bfloat16()
    target = low.softmax(1)
    assert torch.equal(cross_entropy(low, LABELS), cross_entropy(low.float(), LABELS))
    for value in (
        cross_entropy(low, target, torch.ones(6, dtype=torch.bfloat16)),
        squared_distance(target, target.flip(0)),
        sharpen(target, 0.5),
        entropy(low),
    ):
        assert value.dtype == torch.float32


def test_squared_distance_averages_rows_and_classes() -> None:
    a, b = torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([[0.25, 0.75], [0.0, 1.0]])
    assert squared_distance(a, b).item() == pytest.approx((2 * 0.25**2 + 2) / 4)


def test_sharpening() -> None:
    probs = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(sharpen(probs, 1.0), probs)
    expected = torch.tensor([[0.25, 0.09, 0.04], [1, 0, 0]])
    expected = expected / expected.sum(1, keepdim=True)
    torch.testing.assert_close(sharpen(probs, 0.5), expected)
    assert sharpen(torch.full((1, 1000), 1e-3), 1e-3).sum().item() == pytest.approx(1)
    probs = probs.requires_grad_()
    (gradient,) = torch.autograd.grad(sharpen(probs, 0.5)[:, 0].sum(), probs)
    assert gradient.isfinite().all()


def test_entropy_of_even_and_certain_rows() -> None:
    assert entropy(torch.zeros(3, 8)).item() == pytest.approx(math.log(8))
    certain = torch.tensor([[1e4, 0.0, 0.0]], requires_grad=True)
    loss = entropy(certain)
    loss.backward()
    assert loss.item() == 0
    assert certain.grad is not None
    assert certain.grad.isfinite().all()
    free = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(entropy, free)


def test_traces_as_one_graph(logits: Tensor) -> None:
    def losses(logits: Tensor, weight: Tensor) -> Tensor:
        probs = sharpen(logits.softmax(1), 0.5)
        return (
            cross_entropy(logits, LABELS, weight)
            + cross_entropy(logits, probs, weight)
            + squared_distance(probs, probs.flip(0))
            + entropy(logits)
        )

    traced = torch.compile(losses, fullgraph=True, backend="aot_eager", dynamic=False)
    weight = torch.arange(6) < 3
    (actual,) = torch.autograd.grad(traced(logits, weight), logits)
    (expected,) = torch.autograd.grad(losses(logits, weight), logits)
    torch.testing.assert_close(actual, expected)


ROWS = torch.zeros(3, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cross_entropy(ROWS[0], LABELS[:3]), r"logits must be .*\(N, C\); got .*\(4,\)"),
        (lambda: cross_entropy(ROWS.long(), LABELS[:3]), r"logits must be floating.*int64"),
        (lambda: cross_entropy(ROWS, LABELS), r"target .*\(3,\) or .*\(3, 4\); got .*\(6,\)"),
        (lambda: cross_entropy(ROWS, LABELS[:3].int()), r"target .*int64.*got torch.int32"),
        (lambda: cross_entropy(ROWS, ROWS[:, :3]), r"target .*\(3, 4\); got .*\(3, 3\)"),
        (lambda: cross_entropy(ROWS, ROWS, ROWS[:, 0, None]), r"weight .*\(3,\); got \(3, 1\)"),
        (lambda: squared_distance(ROWS, ROWS[:2]), r"probs_b .*\(3, 4\); got \(2, 4\)"),
        (lambda: sharpen(ROWS, 0.0), r"temperature .*greater than 0; got 0.0"),
        (lambda: sharpen(ROWS, math.nan), r"temperature .*got nan"),
    ],
)
def test_errors_name_the_bad_argument(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("label", [-100, -1, 4])
@pytest.mark.parametrize("weight", [None, torch.ones(3)])
def test_no_label_is_ignored_silently(label: int, weight: Tensor | None) -> None:
    with pytest.raises(IndexError, match=f"Target {label} is out of bounds"):
        cross_entropy(ROWS, torch.tensor([0, label, 1]), weight)
