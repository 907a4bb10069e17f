"""The whole objective: its total, its variants, FixMatch as a special case, and its use."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from fullmatch.losses import FullMatchLoss, adaptive_k, adaptive_negative, entropy_meaning
from fullmatch.losses.fullmatch_loss import Variant


def logits(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).log()


WEAK = logits([0.96, 0.02, 0.015, 0.005], [0.40, 0.35, 0.15, 0.10])
STRONG = logits([0.70, 0.15, 0.10, 0.05], [0.30, 0.40, 0.20, 0.10])
LABELED = logits([0.5, 0.2, 0.2, 0.1])
LABELS = torch.tensor([0])


def batch(rows: int = 56, num_classes: int = 10) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Logits for which some images are selected and some are not."""
    torch.manual_seed(0)
    weak = 4 * torch.randn(rows, num_classes)
    strong = (weak + torch.randn(rows, num_classes)).requires_grad_()
    return torch.randn(8, num_classes), torch.randint(num_classes, (8,)), weak, strong


def test_parts_and_total_by_hand() -> None:
    results: dict[Variant, tuple[float, float]] = {
        "paper": (0.05283863597574885, 0.4737550464538215),
        "released": (0.4227090878059908, 0.8436254982840634),
    }
    for variant, (meaning, total) in results.items():
        loss = FullMatchLoss(4, variant=variant)
        parts = loss(LABELED, LABELS, WEAK, STRONG)
        assert parts.supervised.item() == pytest.approx(math.log(2), abs=1e-9)
        assert parts.consistency.item() == pytest.approx(0.17833747196936622, abs=1e-9)
        assert parts.adaptive_negative.item() == pytest.approx(0.24257893850870643, abs=1e-9)
        assert parts.entropy_meaning.item() == pytest.approx(meaning, abs=1e-9)
        assert (parts.total - parts.supervised).item() == pytest.approx(total, abs=1e-9)
        metrics = {name: value.item() for name, value in parts.metrics.items()}
        assert metrics == {"selected": 0.5, "k": 2, "negatives": 2}


def test_the_released_variant_omits_confident_entries() -> None:
    weak = logits([0.96, 0.03, 0.007, 0.003], [0.97, 0.01, 0.015, 0.005])
    strong = logits([0.03, 0.95, 0.015, 0.005], [0.90, 0.05, 0.03, 0.02])
    results: dict[Variant, float] = {"paper": 0.04165717644070493, "released": 0.13474216817976675}
    for variant, expected in results.items():
        parts = FullMatchLoss(4, variant=variant)(LABELED, LABELS, weak, strong)
        assert parts.entropy_meaning.item() == pytest.approx(expected, abs=1e-9)
        assert parts.adaptive_negative.item() == pytest.approx(0.045811090669331214, abs=1e-9)


def test_zero_weights_are_fixmatch_bit_for_bit() -> None:
    labeled, labels, weak, strong = batch()
    state = torch.get_rng_state()
    total = FullMatchLoss(10, alpha=0, beta=0)(labeled, labels, weak, strong).total
    (gradient,) = torch.autograd.grad(total, strong)

    confidence, target = weak.softmax(dim=1).max(dim=1)
    mask = (confidence >= 0.95).float()
    assert 0 < mask.mean() < 1
    consistency = (F.cross_entropy(strong, target, reduction="none") * mask).mean()
    fixmatch = F.cross_entropy(labeled, labels) + consistency
    assert torch.equal(total, fixmatch)
    assert torch.equal(gradient, torch.autograd.grad(fixmatch, strong)[0])
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("variant", ["released", "paper"])
def test_equals_the_separate_functions(variant: Any) -> None:
    labeled, labels, weak, strong = batch()
    parts = FullMatchLoss(10, 0.9, alpha=0.5, beta=2, variant=variant)(
        labeled, labels, weak, strong
    )
    k = adaptive_k(strong, weak)
    selected = weak.softmax(1).amax(1) >= 0.9
    ceiling = 0.9025 if variant == "released" else None
    reduction: Any = "active" if variant == "released" else "paper"
    negative = adaptive_negative(strong, weak, k, ceiling=ceiling)
    meaning = entropy_meaning(strong, weak, selected, k, reduction=reduction, ceiling=ceiling)
    assert torch.equal(parts.adaptive_negative, negative)
    assert torch.equal(parts.entropy_meaning, meaning)
    assert torch.equal(
        parts.total, parts.supervised + parts.consistency + 0.5 * negative + 2 * meaning
    )


def test_k_can_be_passed() -> None:
    *labeled, weak, strong = batch()
    for k in (7, np.int64(7), torch.tensor(7), torch.tensor(7, dtype=torch.uint8)):
        parts = FullMatchLoss(10)(*labeled, weak, strong, k)
        assert parts.metrics["k"].item() == 7
        assert parts.metrics["negatives"].item() == 3
        assert torch.equal(
            parts.adaptive_negative, adaptive_negative(strong, weak, 7, ceiling=0.9025)
        )
    for number, used in ((torch.tensor(99), 10), (torch.tensor(1), 2)):
        assert FullMatchLoss(10)(*labeled, weak, strong, number).metrics["k"].item() == used


@pytest.mark.parametrize("view", [2, 3])
def test_a_row_that_is_not_finite_does_not_affect_others(view: int) -> None:
    inputs = list(batch())
    inputs[3] = inputs[3].detach()
    inputs[view] = inputs[view].clone()
    inputs[view][5] = torch.nan
    strong = inputs[3].requires_grad_()
    parts = FullMatchLoss(10)(*inputs)
    (gradient,) = torch.autograd.grad(parts.total, strong)
    assert parts.total.isfinite()
    assert parts.metrics["k"].item() == 10
    assert gradient.isfinite().all()
    assert gradient[5].abs().max() == 0


def test_extreme_and_low_precision_logits_stay_finite() -> None:
    labeled, labels, weak, strong = batch()
    for scale, dtype in ((1e4, torch.float32), (1.0, torch.bfloat16), (1e3, torch.float16)):
        strong_view = (strong.detach() * scale / 10).to(dtype).requires_grad_()
        parts = FullMatchLoss(10)(
            labeled.to(dtype), labels, (weak * scale / 10).to(dtype), strong_view
        )
        (gradient,) = torch.autograd.grad(parts.total, strong_view)
        assert parts.total.dtype == torch.float32
        assert parts.total.isfinite()
        assert gradient.isfinite().all()


@pytest.mark.parametrize("num_classes", [2, 3, 10])
@pytest.mark.parametrize("variant", ["released", "paper"])
def test_gradcheck(num_classes: int, variant: Any) -> None:
    labeled, labels, weak, strong = batch(6, num_classes)
    loss = FullMatchLoss(num_classes, variant=variant)
    inputs = (labeled.double().requires_grad_(), strong.detach().double().requires_grad_())
    assert torch.autograd.gradcheck(
        lambda x, s: loss(x, labels, weak.double(), s).total,
        inputs,
    )


def test_weak_logits_get_no_gradient() -> None:
    labeled, labels, weak, strong = batch()
    weak.requires_grad_()
    FullMatchLoss(10)(labeled, labels, weak, strong).total.backward()
    assert weak.grad is None
    assert strong.grad is not None


def test_keeps_no_state_pickles_and_traces() -> None:
    loss = FullMatchLoss(10, 0.8, 2, 3, "paper")
    assert not loss.state_dict()
    assert "0.8" in repr(loss)
    assert "paper" in repr(loss)
    copy = pickle.loads(pickle.dumps(loss))
    inputs = batch()
    expected = loss(*inputs)
    assert torch.equal(copy(*inputs).total, expected.total)
    traced = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=False)
    actual = traced(*inputs)
    torch.testing.assert_close(actual.total, expected.total)
    torch.testing.assert_close(actual.metrics, expected.metrics)
    torch.testing.assert_close(
        *(torch.autograd.grad(parts.total, inputs[3]) for parts in (actual, expected))
    )


GOOD = (torch.zeros(2, 4), torch.zeros(2).long(), torch.zeros(3, 4), torch.zeros(3, 4))


@pytest.mark.parametrize(
    ("place", "tensor", "message"),
    [
        (0, torch.zeros(2, 5), r"labeled_logits .*4 classes.*\(2, 5\)"),
        (1, torch.zeros(3).long(), r"target .*\(2,\)"),
        (2, torch.zeros(2, 4), r"weak_logits .*\(3, 4\).*\(2, 4\)"),
        (3, torch.zeros(3, 4).long(), r"strong_logits .*floating.*int64"),
    ],
)
def test_errors_name_the_bad_tensor(place: int, tensor: Tensor, message: str) -> None:
    inputs = [*GOOD[:place], tensor, *GOOD[place + 1 :]]
    with pytest.raises(ValueError, match=message):
        FullMatchLoss(4)(*inputs)


@pytest.mark.parametrize(
    ("place", "name"),
    [(0, "labeled_logits"), (1, "target"), (2, "weak_logits"), (3, "strong_logits")],
)
def test_errors_name_the_list(place: int, name: str) -> None:
    inputs: list[Any] = [*GOOD[:place], GOOD[place].tolist(), *GOOD[place + 1 :]]
    with pytest.raises(TypeError, match=f"{name} must be a tensor; got list"):
        FullMatchLoss(4)(*inputs)


def test_error_names_a_wrong_number_of_classes() -> None:
    with pytest.raises(ValueError, match=r"strong_logits must have 5 classes.*\(3, 4\)"):
        FullMatchLoss(5)(torch.zeros(2, 5), *GOOD[1:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_classes": 1}, "num_classes must be at least 2; got 1"),
        ({"alpha": math.nan}, "alpha must be a finite number; got nan"),
        ({"beta": math.inf}, "beta must be a finite number; got inf"),
        ({"threshold": 1.5}, r"threshold must be in \[0, 1\]; got 1.5"),
        ({"variant": "new"}, "variant must be one of .*'released', 'paper'.*; got 'new'"),
    ],
)
def test_errors_name_the_bad_option(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FullMatchLoss(**{"num_classes": 4, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_classes": 10.5}, "num_classes must be an integer; got 10.5"),
        ({"num_classes": 10.0}, "num_classes must be an integer; got 10.0"),
        ({"num_classes": "10"}, "num_classes must be an integer; got '10'"),
        ({"num_classes": None}, "num_classes must be an integer; got None"),
        ({"threshold": "0.95"}, "threshold must be a number; got str"),
        ({"threshold": None}, "threshold must be a number; got NoneType"),
        ({"alpha": None}, "alpha must be a number; got NoneType"),
        ({"beta": [1]}, "beta must be a number; got list"),
    ],
)
def test_errors_name_an_option_of_the_wrong_type(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        FullMatchLoss(**{"num_classes": 4, **options})


def test_accepts_numpy_and_tensor_scalars() -> None:
    loss = FullMatchLoss(np.int64(4), np.float32(0.5), np.float64(2), torch.tensor(1.0))  # type: ignore[arg-type]
    assert loss(LABELED, LABELS, WEAK, STRONG).total.isfinite()
