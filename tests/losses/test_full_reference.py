"""The losses against loops, in thousands of random cases, and their invariances."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fullmatch import losses
from tests.reference import losses as reference

DTYPES = [torch.float64, torch.float32, torch.bfloat16]


@st.composite
def cases(draw: st.DrawFn, rows: st.SearchStrategy[int], classes: st.SearchStrategy[int]) -> Any:
    """Two similar views at various scales, with or without ties, and all options."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    shape = (draw(rows), draw(classes))
    scale = draw(st.sampled_from([0.1, 1.0, 3.0, 30.0, 1e4]))
    weak = torch.randn(shape, generator=generator, dtype=torch.float64)
    noise = torch.randn(shape, generator=generator, dtype=torch.float64)
    strong = weak + draw(st.sampled_from([0.0, 0.3, 1.0])) * noise
    if draw(st.booleans()):
        weak, strong = weak.round(), strong.round()
    dtype = draw(st.sampled_from(DTYPES))
    weak, strong = (weak * scale).to(dtype), (strong * scale).to(dtype)
    if draw(st.integers(0, 9)) == 0:
        row = draw(st.integers(0, shape[0] - 1))
        draw(st.sampled_from([weak, strong]))[row, 0] = draw(
            st.sampled_from([float("nan"), float("inf"), float("-inf")])
        )
    weight = torch.rand(shape[0], generator=generator)
    if draw(st.booleans()):
        weight = weight > draw(st.sampled_from([0.0, 0.5, 1.0]))
    k = draw(st.none() | st.integers(2, shape[1]))
    return strong, weak, weight, k


def array(values: Tensor) -> Any:
    return values.double().numpy()


def agree(
    fast: Tensor, strong: Tensor, slow: tuple[float, Any], what: str, tolerance: float
) -> None:
    value, expected = slow
    (actual,) = torch.autograd.grad(fast, strong)
    assert fast.isfinite(), what
    assert actual.isfinite().all(), what
    np.testing.assert_allclose(fast.item(), value, rtol=tolerance, atol=tolerance, err_msg=what)
    coarse = (
        tolerance if strong.dtype != torch.bfloat16 else 2**-8
    )  # the gradient has the dtype of its input
    # Logarithms as large as the logits cancel in a gradient, but not their rounding errors.
    size = strong.detach().nan_to_num(0, 0, 0).abs().max().item()
    rounding = 4 * torch.finfo(fast.dtype).eps * size
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(array(actual), expected, coarse, coarse * scale + rounding)


def compare(case: tuple[Tensor, Tensor, Tensor, int | None], form: Any, reduction: Any) -> None:
    strong, weak, weight, k = case
    tolerance = 1e-9 if strong.dtype == torch.float64 else 2e-4
    views = (array(strong), array(weak))
    adaptive = losses.adaptive_k(strong, weak)
    assert adaptive.item() == reference.adaptive_k(*views)
    used = adaptive if k is None else k
    rows = [reference.negatives(row, int(used)) for row in views[1]]
    expected = [[c in row for c in range(strong.shape[1])] for row in rows]
    assert losses.negative_labels(weak, used).tolist() == expected

    strong.requires_grad_()
    # A ceiling that no p equals exactly, since rounding would then decide the side.
    for ceiling in (None, 0.9025):
        fast = losses.adaptive_negative(strong, weak, used, weight=weight, ceiling=ceiling)
        slow = reference.adaptive_negative(*views, int(used), array(weight), ceiling)
        agree(fast, strong, slow, "adaptive_negative", tolerance)
        fast = losses.entropy_meaning(
            strong, weak, weight, k, form=form, reduction=reduction, ceiling=ceiling
        )
        slow = reference.entropy_meaning(*views, array(weight), k, form, reduction, ceiling)
        agree(fast, strong, slow, "entropy_meaning", tolerance)


@pytest.mark.no_cover  # it would take twice as long
@settings(max_examples=2000, deadline=None, derandomize=True)
@given(
    cases(st.integers(1, 6), st.integers(2, 7)),
    st.sampled_from(["bce", "ce"]),
    st.sampled_from(["active", "paper"]),
)
def test_small_batches_agree_with_loops(case: Any, form: str, reduction: str) -> None:
    compare(case, form, reduction)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    cases(st.integers(1, 2), st.sampled_from([100, 300, 1000]))
    | cases(st.sampled_from([64, 512]), st.integers(2, 10)),
    st.sampled_from(["active", "paper"]),
)
def test_large_batches_agree_with_loops(case: Any, reduction: str) -> None:
    compare(case, "bce", reduction)


@pytest.mark.parametrize("form", ["bce", "ce"])
def test_reference_gradients_match_its_values(form: str) -> None:
    random = np.random.default_rng(0)
    strong, weak = random.normal(size=(3, 5)), random.normal(size=(3, 5))
    weight = random.uniform(size=3)

    def meaning(z: Any) -> tuple[float, Any]:
        return reference.entropy_meaning(z, weak, weight, 4, form)

    def negative(z: Any) -> tuple[float, Any]:
        return reference.adaptive_negative(z, weak, 2, weight)

    def value_of(loss: Callable[[Any], tuple[float, Any]], z: Any) -> float:
        return loss(z)[0]

    for loss in (meaning, negative):
        numeric = reference.numeric_gradient(partial(value_of, loss), strong)
        np.testing.assert_allclose(loss(strong)[1], numeric, atol=1e-8)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(cases(st.integers(1, 8), st.integers(2, 12)), st.randoms(use_true_random=False))
def test_order_of_rows_and_classes_changes_nothing(case: Any, random: Any) -> None:
    strong, weak, weight, k = (
        value.double() if isinstance(value, Tensor) else value for value in case
    )
    # Order matters only for ties of the weak view's best class, so break them.
    weak = weak + (weak.argmax(1, keepdim=True) == torch.arange(weak.shape[1]))
    rows, classes = list(range(strong.shape[0])), list(range(strong.shape[1]))
    random.shuffle(rows)
    random.shuffle(classes)

    def total(strong: Tensor, weak: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        strong = strong.clone().requires_grad_()
        used = losses.adaptive_k(strong, weak) if k is None else k
        loss = losses.adaptive_negative(strong, weak, used, weight=weight)
        loss = loss + losses.entropy_meaning(strong, weak, weight, used)
        return loss.detach(), torch.autograd.grad(loss, strong)[0]

    value, gradient = total(strong, weak, weight)
    permuted, permuted_gradient = total(
        strong[rows][:, classes], weak[rows][:, classes], weight[rows]
    )
    torch.testing.assert_close(permuted, value, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(permuted_gradient, gradient[rows][:, classes], rtol=1e-9, atol=1e-9)
