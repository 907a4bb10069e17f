"""The losses with hand-computed numbers, edge cases and bad input."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fullmatch.losses import (
    adaptive_k,
    adaptive_negative,
    cross_entropy,
    entropy,
    entropy_meaning,
    kullback_leibler,
    log1m_softmax,
    low_probability_negative,
    negative_labels,
    negative_learning,
    self_adaptive_fairness,
)

CEILING = 0.9025


def logits(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).log()


def gradient(loss: Callable[[Tensor], Tensor], strong: Tensor) -> Tensor:
    strong = strong.clone().requires_grad_()
    (result,) = torch.autograd.grad(loss(strong), strong)
    return result


def close(actual: Tensor, expected: Any, tolerance: float = 1e-9) -> None:
    expected = torch.as_tensor(expected, dtype=actual.dtype)
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance)


MIXED_WEAK = logits([0.96, 0.02, 0.015, 0.005], [0.40, 0.35, 0.15, 0.10])
MIXED_STRONG = logits([0.70, 0.15, 0.10, 0.05], [0.30, 0.40, 0.20, 0.10])
FIRST = torch.tensor([True, False])
ONE = torch.tensor([True])
WEAK = MIXED_WEAK[:1]  # ranks the classes 0, 1, 2, 3
STRONG = MIXED_STRONG[:1]


def test_one_selected_image_of_two() -> None:
    k = adaptive_k(MIXED_STRONG, MIXED_WEAK)
    assert k.item() == 2
    assert k.dtype == torch.int64
    assert k.ndim == 0
    assert negative_labels(MIXED_WEAK, k).tolist() == [[False, False, True, True]] * 2
    views = (MIXED_STRONG, MIXED_WEAK)
    close(adaptive_negative(*views, k), 0.24257893850870643)
    close(entropy_meaning(*views, FIRST, k), 0.4227090878059908)
    close(entropy_meaning(*views, FIRST, k, reduction="paper"), 0.05283863597574885)


def test_all_classes_when_k_is_their_number() -> None:
    views = (MIXED_STRONG, MIXED_WEAK, FIRST)
    for k in (4, None, torch.tensor(4)):
        close(entropy_meaning(*views, k, reduction="paper"), 0.12584990009152855)
        close(entropy_meaning(*views, k), 0.33559973357740946)
        close(entropy_meaning(*views, k, form="ce") * 3, 0.7195437351433918)


def test_a_weak_label_ranked_last_makes_k_all_classes() -> None:
    weak = logits([0.97, 0.02, 0.01], [0.10, 0.60, 0.30])
    strong = logits([0.80, 0.15, 0.05], [0.50, 0.20, 0.30])
    k = adaptive_k(strong, weak)
    assert k.item() == 3
    assert adaptive_negative(strong, weak, k).item() == 0
    close(entropy_meaning(strong, weak, FIRST, k, reduction="paper"), 0.11361937122346337)
    close(entropy_meaning(strong, weak, FIRST, k), 0.3408581136703901)


@pytest.mark.parametrize("reduction", ["active", "paper"])
def test_nothing_selected_is_exactly_zero(reduction: Any) -> None:
    weak = logits([0.6, 0.3, 0.1], [0.5, 0.3, 0.2])
    strong = logits([0.7, 0.2, 0.1], [0.45, 0.35, 0.2])
    k = adaptive_k(strong, weak)
    assert k.item() == 2
    close(adaptive_negative(strong, weak, k), 0.16425203348601802)
    for selected in (torch.zeros(2), torch.zeros(2, dtype=torch.bool)):

        def loss(z: Tensor, selected: Tensor = selected) -> Tensor:
            return entropy_meaning(z, weak, selected, k, reduction=reduction)

        assert loss(strong).item() == 0
        assert gradient(loss, strong).abs().max().item() == 0


def meaning_sum(strong: Tensor, k: int) -> Tensor:
    return entropy_meaning(strong, WEAK, ONE, k, reduction="paper") * 4


def test_gradient_over_all_classes() -> None:
    close(meaning_sum(STRONG, 4), 1.0067992007322282)
    expected = [[-0.4856728881, 0.2985639982, 0.1598269793, 0.0272819106]]
    close(gradient(lambda z: meaning_sum(z, 4), STRONG), expected, 1e-8)


def test_gradient_that_reaches_the_target_through_the_mean() -> None:
    # The paper varies only the target's probability, so the probabilities need not sum to one here;
    # the loss is therefore written in terms of them, as printed, and compared at this point.
    p = STRONG.exp().squeeze(0).requires_grad_()
    y = (1 - p[0]) / 3
    others = p[1:].detach()
    printed = -(y * others.log() + (1 - y) * (1 - others).log()).sum() / 4
    (by_target,) = torch.autograd.grad(printed, p)
    close(by_target[0], -0.5730220509908972)
    close(entropy_meaning(STRONG, WEAK, ONE, reduction="paper"), printed.item())


def test_gradient_of_the_second_class_changes_sign_at_one_half() -> None:
    close(meaning_sum(STRONG, 2), 0.4227090878059908)
    expected = [[-0.1821331108, 0.2211616346, -0.0260190159, -0.0130095079]]
    close(gradient(lambda z: meaning_sum(z, 2), STRONG), expected)
    wrong = logits([0.25, 0.60, 0.10, 0.05])
    expected = [[0.0608197662, -0.0973116260, 0.0243279065, 0.0121639533]]
    close(gradient(lambda z: meaning_sum(z, 2), wrong), expected)


def test_gradient_of_even_non_targets() -> None:
    even = logits([0.7, 0.1, 0.1, 0.1])
    close(meaning_sum(even, 4), 0.975248920174345)
    expected = [[-0.4614171611, *[0.1538057204] * 3]]
    close(gradient(lambda z: meaning_sum(z, 4), even), expected)


def test_gradient_of_one_negative() -> None:
    close(adaptive_negative(STRONG, WEAK, 3), 0.05129329438755)
    expected = [[-0.0368421053, -0.0078947368, -0.0052631579, 0.05]]
    close(gradient(lambda z: adaptive_negative(z, WEAK, 3), STRONG), expected)


def test_two_classes_have_no_negatives() -> None:
    weak, strong = logits([0.99, 0.01]), logits([0.9, 0.1])
    k = adaptive_k(strong, weak)
    assert k.item() == 2
    assert adaptive_negative(strong, weak, k).item() == 0
    close(entropy_meaning(strong, weak, ONE, k, reduction="paper"), 0.1625414866957241)
    close(entropy_meaning(strong, weak, ONE, k), 0.3250829733914482)


def test_ceiling_leaves_confident_entries_out() -> None:
    weak = logits([0.96, 0.03, 0.007, 0.003], [0.97, 0.01, 0.015, 0.005])
    strong = logits([0.03, 0.95, 0.015, 0.005], [0.90, 0.05, 0.03, 0.02])
    k = adaptive_k(strong, weak)
    assert k.item() == 2
    both = torch.tensor([True, True])
    for reduction, free, limited in (
        ("paper", 0.04165717644070493, 0.016842771022470844),
        ("active", 0.1666287057628197, 0.13474216817976675),
    ):
        options: Any = {"reduction": reduction}
        close(entropy_meaning(strong, weak, both, k, **options), free)
        close(entropy_meaning(strong, weak, both, k, ceiling=CEILING, **options), limited)
    for ceiling in (None, CEILING):
        close(adaptive_negative(strong, weak, k, ceiling=ceiling), 0.045811090669331214)
    # The ceiling applies to negatives too, if the strong view prefers a class that is ranked last.
    sure = logits([0.02, 0.02, 0.01, 0.95])
    close(adaptive_negative(sure, WEAK, 3), -math.log(0.05))
    assert adaptive_negative(sure, WEAK, 3, ceiling=CEILING).item() == 0


def test_a_network_with_constant_output_has_no_negatives() -> None:
    same = torch.zeros(3, 5)
    k = adaptive_k(same, same)
    assert k.item() == 5
    assert adaptive_negative(same, same, k).item() == 0


def test_strong_view_confidently_wrong_stays_finite() -> None:
    strong, weak = torch.tensor([[100.0, 0.0, 0.0]]), logits([0.01, 0.98, 0.01]).float()
    k = adaptive_k(strong, weak)
    assert k.item() == 3
    close(log1m_softmax(strong)[0, 0], -99.3068528194, 1e-4)
    for ceiling, expected in ((None, 99.6534264097), (CEILING, 50.0)):

        def loss(z: Tensor, ceiling: float | None = ceiling) -> Tensor:
            return entropy_meaning(z, weak, ONE, k, reduction="paper", ceiling=ceiling) * 3

        close(loss(strong), expected, 1e-4)
        assert gradient(loss, strong).isfinite().all()


def test_log_of_one_minus_p_where_float32_rounds_p_to_1() -> None:
    value = log1m_softmax(torch.tensor([[20.0, 0.0, 0.0]]))
    close(value[0, 0], -19.3068528236, 2e-6)
    close(value[0, 1:], [-math.exp(-20.0)] * 2, 1e-15)
    torch.manual_seed(0)
    free = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    close(log1m_softmax(free).detach(), (1 - free.softmax(1)).log().detach(), 1e-12)
    assert torch.autograd.gradcheck(log1m_softmax, free)


def test_bfloat16_logits_are_computed_in_float32() -> None:
    strong, weak = MIXED_STRONG.bfloat16(), MIXED_WEAK.bfloat16()
    k = adaptive_k(strong, weak)
    negative = adaptive_negative(strong, weak, k)
    meaning = entropy_meaning(strong, weak, FIRST, k)
    assert negative.dtype == meaning.dtype == torch.float32
    close(negative, 0.2431102490, 1e-5)
    close(meaning, 0.4224602956, 1e-5)


def with_weights(
    loss: Callable[[Tensor, Tensor, Tensor], Tensor], weak: Tensor, weight: Tensor, strong: Tensor
) -> Tensor:
    return loss(strong, weak, weight)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("view", ["strong", "weak"])
def test_a_row_that_is_not_finite_does_not_affect_others(bad: float, view: str) -> None:
    torch.manual_seed(0)
    good = {"strong": torch.randn(6, 5), "weak": torch.randn(6, 5)}
    rows = {name: value.clone() for name, value in good.items()}
    rows[view][2, 3] = bad
    assert adaptive_k(rows["strong"], rows["weak"]).item() == 5
    weight = torch.rand(6)
    without = torch.arange(6) != 2
    # A weight computed from the logits of such a row would be NaN as well.
    poisoned = weight.masked_fill(~without, math.nan)
    weighted_losses: list[Callable[[Tensor, Tensor, Tensor], Tensor]] = [
        lambda s, w, m: adaptive_negative(s, w, 3, weight=m),
        lambda s, w, m: entropy_meaning(s, w, m, 3, reduction="paper"),
    ]
    for loss in weighted_losses:
        expected = loss(good["strong"][without], good["weak"][without], weight[without]) * 5 / 6
        close(loss(rows["strong"], rows["weak"], poisoned), expected, 1e-6)
        result = gradient(partial(with_weights, loss, rows["weak"], poisoned), rows["strong"])
        clean = gradient(
            partial(with_weights, loss, good["weak"], weight * without), good["strong"]
        )
        assert result[2].abs().max().item() == 0
        close(result[without], clean[without], 1e-7)


def test_weights_give_the_ablations_of_negative_learning() -> None:
    chosen = torch.tensor([True, False])
    both = adaptive_negative(MIXED_STRONG, MIXED_WEAK, 2)
    with_label = adaptive_negative(MIXED_STRONG, MIXED_WEAK, 2, weight=chosen)
    without = adaptive_negative(MIXED_STRONG, MIXED_WEAK, 2, weight=~chosen)
    close(with_label, -math.log(0.9 * 0.95) / 2)
    close(with_label + without, both.item())


def test_mean_is_weighted_by_share() -> None:
    def loss(weights: list[float]) -> Tensor:
        return entropy_meaning(MIXED_STRONG, MIXED_WEAK, torch.tensor(weights), 3)

    first, second = loss([1, 0]), loss([0, 1])
    close(loss([0.75, 0.25]), (0.75 * first + 0.25 * second).item())
    close(loss([3e-5, 1e-5]), (0.75 * first + 0.25 * second).item(), 1e-7)
    assert loss([1e-45, 0]).isfinite()


def test_a_tie_with_the_kth_class_is_not_negative() -> None:
    weak = torch.tensor([[3.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 1.0]])
    assert negative_labels(weak, 2).tolist() == [[False, False, False, True], [True, *[False] * 3]]


@pytest.mark.parametrize("k", [2, 5, 12])
def test_compiled_code_ranks_the_same_without_a_sort(k: int) -> None:
    weak = torch.randint(6, (40, 12)).float()  # many ties
    weak[0, 0], weak[1, 1] = math.nan, math.inf
    compiled = torch.compile(negative_labels, fullgraph=True, backend="aot_eager")
    for number in (k, torch.tensor(k)):
        assert torch.equal(compiled(weak, number), negative_labels(weak, number))


def test_a_row_that_is_not_finite_has_no_negatives() -> None:
    weak = torch.tensor([[math.inf, 2.0, 1.0], [3.0, 2.0, 1.0], [1.0, 2.0, -math.inf]])
    assert negative_labels(weak, 2).tolist() == [[False] * 3, [False, False, True], [False] * 3]


def test_any_integer_is_a_k() -> None:
    expected = negative_labels(MIXED_WEAK, 3)
    for k in (np.int64(3), np.int32(3), np.uint8(3)):
        assert torch.equal(negative_labels(MIXED_WEAK, k), expected)  # type: ignore[arg-type]
    for wrong in (np.int64(5), np.float64(3), 3.0, True):
        with pytest.raises(ValueError, match=r"k must be an integer in \[2, 4\]"):
            negative_labels(MIXED_WEAK, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    ],
)
def test_a_k_of_any_integer_dtype(dtype: torch.dtype) -> None:
    weak = torch.randn(3, 300)  # more classes than a byte can represent
    k = torch.tensor(100, dtype=dtype)
    assert torch.equal(negative_labels(weak, k), negative_labels(weak, 100))


def test_a_k_of_a_narrow_dtype_in_compiled_code() -> None:
    weak = torch.randn(3, 300)
    compiled = torch.compile(
        lambda k: negative_labels(weak, k), fullgraph=True, backend="aot_eager", dynamic=False
    )
    for dtype in (torch.uint8, torch.int8, torch.uint16):
        k = torch.tensor(100, dtype=dtype)
        assert torch.equal(compiled(k), negative_labels(weak, 100))


SURE = torch.tensor([[200.0, 0.0, 0.0, 0.0]])
NONE = torch.zeros(1, 4, dtype=torch.bool)


@pytest.mark.parametrize(
    "loss",
    [
        adaptive_negative(SURE, SURE, 4),
        entropy_meaning(SURE, SURE, ~ONE),
        negative_learning(SURE, NONE),
        low_probability_negative(SURE, SURE.softmax(1)),
        entropy(SURE),
        self_adaptive_fairness(SURE, torch.zeros(1), torch.full((4,), 0.25), torch.ones(4) / 4),
    ],
)
def test_zero_losses_are_not_minus_zero(loss: Tensor) -> None:
    assert str(loss.item()) == "0.0"


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (lambda: log1m_softmax([[1.0, 2.0]]), "logits"),  # type: ignore[arg-type]
        (lambda: adaptive_k(STRONG, [[1.0, 2.0]]), "weak_logits"),  # type: ignore[arg-type]
        (lambda: entropy_meaning(STRONG, [[1.0]], ONE), "weak_logits"),  # type: ignore[arg-type]
        (lambda: entropy_meaning(STRONG, WEAK, [True]), "selected"),  # type: ignore[arg-type]
        (lambda: entropy([[1.0, 2.0]]), "logits"),  # type: ignore[arg-type]
        (lambda: cross_entropy([[1.0]], ONE), "logits"),  # type: ignore[arg-type]
        (lambda: kullback_leibler(STRONG, [[1.0]]), "probs"),  # type: ignore[arg-type]
        (lambda: low_probability_negative([[1.0]], WEAK), "logits"),  # type: ignore[arg-type]
    ],
)
def test_errors_name_the_list(loss: Callable[[], Tensor], name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be a tensor; got list"):
        loss()


def test_a_tensor_k_is_clamped() -> None:
    weak = torch.randn(3, 4)
    assert not negative_labels(weak, torch.tensor(9)).any()
    assert negative_labels(weak, torch.tensor(0)).sum().item() == 6


def test_k_of_a_batch_is_the_maximum_of_its_parts() -> None:
    torch.manual_seed(3)
    weak = torch.randn(40, 12, dtype=torch.float64)
    strong = weak + torch.randn(40, 12, dtype=torch.float64)
    k = adaptive_k(strong, weak)
    parts = list(zip(strong.chunk(2), weak.chunk(2), strict=True))
    assert torch.stack([adaptive_k(*part) for part in parts]).max() == k
    halves = torch.stack([adaptive_negative(*part, 3) for part in parts])
    close(halves.mean(), adaptive_negative(strong, weak, 3).item())
    chosen = torch.arange(40) < 15
    local = [
        entropy_meaning(*part, mask, 3) for part, mask in zip(parts, chosen.chunk(2), strict=True)
    ]
    assert not torch.isclose(torch.stack(local).mean(), entropy_meaning(strong, weak, chosen, 3))


def test_weak_logits_get_no_gradient_and_only_their_order_counts() -> None:
    weak = MIXED_WEAK.clone().requires_grad_()
    strong = MIXED_STRONG.clone().requires_grad_()
    selected = weak.softmax(1).amax(1)
    loss = adaptive_negative(strong, weak, 2) + entropy_meaning(strong, weak, selected, 2)
    loss.backward()
    assert weak.grad is None
    probs = MIXED_WEAK.exp()
    assert adaptive_negative(strong, probs, 2) == adaptive_negative(strong, weak, 2)
    assert adaptive_k(strong, probs) == adaptive_k(strong, weak)


@pytest.mark.parametrize("num_classes", [2, 3, 10])
@pytest.mark.parametrize("reduction", ["active", "paper"])
@pytest.mark.parametrize("form", ["bce", "ce"])
def test_gradcheck(num_classes: int, reduction: Any, form: Any) -> None:
    torch.manual_seed(num_classes)
    strong = torch.randn(6, num_classes, dtype=torch.float64, requires_grad=True)
    weak = strong.detach() + 0.3 * torch.randn(6, num_classes, dtype=torch.float64)
    weight = torch.rand(6, dtype=torch.float64)

    def loss(z: Tensor) -> Tensor:
        k = adaptive_k(z, weak)
        meaning = entropy_meaning(z, weak, weight, k, form=form, reduction=reduction, ceiling=0.9)
        return meaning + adaptive_negative(z, weak, min(3, num_classes), weight=weight)

    assert torch.autograd.gradcheck(loss, strong)


def test_traces_as_one_graph() -> None:
    torch.manual_seed(0)
    strong, weak = torch.randn(8, 10, requires_grad=True), torch.randn(8, 10)

    def losses(strong: Tensor, weak: Tensor, selected: Tensor) -> Tensor:
        k = adaptive_k(strong, weak)
        return (
            adaptive_negative(strong, weak, k, weight=selected, ceiling=CEILING)
            + adaptive_negative(strong, weak, 5)
            + entropy_meaning(strong, weak, selected, k, ceiling=CEILING)
            + entropy_meaning(strong, weak, ~selected, form="ce", reduction="paper")
            + negative_labels(weak, k).sum()
        )

    traced = torch.compile(losses, fullgraph=True, backend="aot_eager", dynamic=False)
    selected = torch.arange(8) < 3
    (actual,) = torch.autograd.grad(traced(strong, weak, selected), strong)
    (expected,) = torch.autograd.grad(losses(strong, weak, selected), strong)
    torch.testing.assert_close(actual, expected)


GOOD = torch.zeros(3, 4)
MASK = torch.ones(3, dtype=torch.bool)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: adaptive_k(torch.zeros(3), GOOD), r"strong_logits .*\(U, C\).*\(3,\)"),
        (lambda: adaptive_k(GOOD, GOOD.long()), r"weak_logits .*floating.*int64"),
        (lambda: adaptive_k(GOOD, torch.zeros(2, 4)), r"weak_logits .*\(3, 4\).*\(2, 4\)"),
        (lambda: adaptive_k(torch.zeros(0, 4), torch.zeros(0, 4)), r"strong_logits .*U >= 1"),
        (lambda: log1m_softmax(torch.zeros(3, 1)), r"logits .*C >= 2.*\(3, 1\)"),
        (lambda: negative_labels(GOOD, 1), r"k must be .*\[2, 4\]; got 1"),
        (lambda: negative_labels(GOOD, 5), r"k must be .*\[2, 4\]; got 5"),
        (lambda: negative_labels(GOOD, 2.5), r"k must be .*got 2.5"),  # type: ignore[arg-type]
        (lambda: negative_labels(GOOD, torch.ones(2).long()), r"k must be .*0-d.*\(2,\)"),
        (lambda: negative_labels(GOOD, torch.tensor(2.0)), r"k must be .*float32"),
        (lambda: negative_labels(GOOD, torch.tensor(True)), r"k must be .*bool"),
        (lambda: negative_labels(GOOD, torch.tensor(2j)), r"k must be .*complex64"),
        (lambda: adaptive_negative(GOOD, GOOD, None), r"k must be"),  # type: ignore[arg-type]
        (lambda: adaptive_negative(GOOD, GOOD, 2, weight=MASK[:2]), r"weight .*\(3,\).*\(2,\)"),
        (lambda: adaptive_negative(GOOD, GOOD, 2, ceiling=0.0), r"ceiling .*\(0, 1\]; got 0.0"),
        (lambda: entropy_meaning(GOOD, GOOD, MASK[None]), r"selected .*\(3,\).*\(1, 3\)"),
        (lambda: entropy_meaning(GOOD, GOOD, MASK, form="mse"), r"form .*'bce', 'ce'.*'mse'"),  # type: ignore[arg-type]
        (lambda: entropy_meaning(GOOD, GOOD, MASK, reduction="sum"), r"reduction .*'sum'"),  # type: ignore[arg-type]
    ],
)
def test_errors_name_the_bad_argument(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_selection_without_sorting_equals_sorting(dtype: torch.dtype) -> None:
    """Ties, also with the k-th class, and infinite entries rank as in a sorted row."""
    torch.manual_seed(0)
    rows = torch.cat([torch.randn(20, 12), torch.randint(4, (20, 12)).float()]).to(dtype)
    rows[0], rows[1, 3] = 0.5, -torch.inf
    for k in range(2, 13):
        kth = rows.sort(dim=1, descending=True).values[:, k - 1 : k]
        expected = (rows < kth) & rows.isfinite().all(dim=1, keepdim=True)
        assert torch.equal(negative_labels(rows, torch.tensor(k)), expected)
