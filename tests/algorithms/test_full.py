"""FullMatch as a whole: published numbers, and every variant."""

import math

import pytest
import torch

from fullmatch.algorithms import FixMatch, FlexMatch, Full, MixMatch, full
from fullmatch.errors import UserError
from tests.algorithms.fixed_views import batch, echo_task, objective

SUPERVISED = -math.log(0.8)
# Two images of four classes; the first is selected. k is 2, classes 2 and 3 are negative.
WEAK = [[0.96, 0.02, 0.015, 0.005], [0.40, 0.35, 0.15, 0.10]]
STRONG = [[0.70, 0.15, 0.10, 0.05], [0.30, 0.40, 0.20, 0.10]]
CONSISTENCY, NEGATIVE = 0.17833747196936622, 0.24257893850870643
MEANING = {"paper": 0.05283863597574885, "released": 0.4227090878059908}


def compute(**options: object) -> dict[str, float]:
    """Loss and metrics of the two images in a variant."""
    spec = full(FixMatch(), **options)
    loss, metrics = objective(spec.build(echo_task(4)), batch(WEAK, STRONG))
    plain = {name: value.item() for name, value in metrics.items() if value.dim() == 0}
    return plain | {"loss": loss.item()}


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_published_numbers(variant: str) -> None:
    parts = compute(variant=variant)
    assert parts["supervised"] == pytest.approx(SUPERVISED, abs=1e-6)
    assert parts["consistency"] == pytest.approx(CONSISTENCY, abs=1e-6)
    assert parts["adaptive_negative"] == pytest.approx(NEGATIVE, abs=1e-6)
    assert parts["entropy_meaning"] == pytest.approx(MEANING[variant], abs=1e-6)
    total = SUPERVISED + CONSISTENCY + NEGATIVE + MEANING[variant]
    assert parts["loss"] == pytest.approx(total, abs=1e-6)
    assert parts["k"] == 2
    assert parts["negatives"] == 2
    assert parts["selected"] == 0.5


def test_weights() -> None:
    parts = compute(alpha=0.5, beta=2.0)
    total = SUPERVISED + CONSISTENCY + 0.5 * NEGATIVE + 2.0 * MEANING["released"]
    assert parts["loss"] == pytest.approx(total, abs=1e-6)


def test_without_negatives_every_class_but_the_target_is_a_non_target() -> None:
    """k is C: the published sum over three classes, over three entries or over B C = 8."""
    for variant, entries in (("released", 3), ("paper", 8)):
        parts = compute(adaptive_negative=False, variant=variant)
        assert parts["entropy_meaning"] == pytest.approx(1.0067992007322284 / entries, abs=1e-6)
        assert "adaptive_negative" not in parts
        assert "k" not in parts
        total = SUPERVISED + CONSISTENCY + parts["entropy_meaning"]
        assert parts["loss"] == pytest.approx(total, abs=1e-6)


def test_cross_entropy_form_is_the_first_half() -> None:
    parts = compute(adaptive_negative=False, form="ce", variant="paper")
    assert parts["entropy_meaning"] == pytest.approx(0.7195437351433918 / 8, abs=1e-6)


def test_turning_a_loss_off_differs_from_a_weight_of_zero() -> None:
    silent, absent = compute(alpha=0.0), compute(adaptive_negative=False)
    assert silent["k"] == 2
    assert silent["entropy_meaning"] != pytest.approx(absent["entropy_meaning"], abs=1e-3)
    parts = compute(entropy_meaning=False)
    assert parts["loss"] == pytest.approx(SUPERVISED + CONSISTENCY + NEGATIVE, abs=1e-6)
    assert "entropy_meaning" not in parts


@pytest.mark.parametrize(("on", "row"), [("selected", 0), ("unselected", 1)])
def test_negatives_on_some_of_the_images(on: str, row: int) -> None:
    expected = -sum(math.log(1 - p) for p in STRONG[row][2:]) / 2
    assert compute(negatives_on=on)["adaptive_negative"] == pytest.approx(expected, abs=1e-6)


def test_only_the_released_variant_has_a_ceiling() -> None:
    """Published: entries with a strong probability above 0.9025 are left out."""
    weak = [[0.96, 0.03, 0.007, 0.003], [0.97, 0.01, 0.015, 0.005]]
    strong = [[0.03, 0.95, 0.015, 0.005], [0.90, 0.05, 0.03, 0.02]]
    for variant, expected in (("released", 0.13474216817976675), ("paper", 0.04165717644070493)):
        built = full(FixMatch(), variant=variant).build(echo_task(4))
        metrics = objective(built, batch(weak, strong)).metrics
        assert metrics["entropy_meaning"].item() == pytest.approx(expected, abs=1e-6)
        assert metrics["adaptive_negative"].item() == pytest.approx(0.045811090669331214, abs=1e-6)


def test_k_is_over_all_images_selected_or_not() -> None:
    weak = [[0.97, 0.02, 0.01], [0.10, 0.60, 0.30]]
    strong = [[0.80, 0.15, 0.05], [0.50, 0.20, 0.30]]
    built = full(FixMatch(), variant="paper").build(echo_task(3))
    metrics = objective(built, batch(weak, strong)).metrics
    assert metrics["k"] == 3
    assert metrics["adaptive_negative"] == 0
    assert metrics["consistency"].item() == pytest.approx(0.11157177565710485, abs=1e-6)
    assert metrics["entropy_meaning"].item() == pytest.approx(0.11361937122346337, abs=1e-6)


def test_nothing_selected_is_finite() -> None:
    weak = [[0.6, 0.3, 0.1], [0.5, 0.3, 0.2]]
    strong = [[0.7, 0.2, 0.1], [0.45, 0.35, 0.2]]
    loss, metrics = objective(full(FixMatch()).build(echo_task(3)), batch(weak, strong))
    assert metrics["consistency"] == metrics["entropy_meaning"] == 0
    assert metrics["adaptive_negative"].item() == pytest.approx(0.16425203348601802, abs=1e-6)
    loss.backward()  # does not raise


def test_accuracy_of_negatives_counts_only_known_labels() -> None:
    """Negatives are classes 2 and 3: wrong once, for an image of class 3."""
    views = batch(WEAK, STRONG, hidden=[3, -1])
    metrics = objective(full(FixMatch()).build(echo_task(4)), views).metrics
    assert metrics["negative_accuracy"].tolist() == [1.0, 2.0]
    assert metrics["pseudo_label_accuracy"].tolist() == [0.0, 1.0]


def test_share_of_non_targets_above_one_half() -> None:
    weak, strong = [[0.96, 0.03, 0.01]] * 2, [[0.2, 0.6, 0.2], [0.8, 0.15, 0.05]]
    metrics = objective(full(FixMatch()).build(echo_task(3)), batch(weak, strong)).metrics
    assert metrics["k"] == 3
    above, entries = metrics["non_target_above_half"].tolist()
    assert above == 1.0
    assert entries == 2 * (3 - 1)


def test_fullflex_selects_entropy_meaning_by_its_own_thresholds() -> None:
    """At the start every threshold is 0, so that both images are selected."""
    metrics = objective(full(FlexMatch()).build(echo_task(4)), batch(WEAK, STRONG)).metrics
    assert metrics["selected"] == 1
    value = metrics["entropy_meaning"].item()

    def entropy(p: float) -> float:
        return -p * math.log(p) - (1 - p) * math.log(1 - p)

    assert value == pytest.approx((entropy(0.15) + entropy(0.40)) / 2, abs=1e-6)


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_weights_must_be_finite(name: str) -> None:
    with pytest.raises(UserError, match=f"full.{name} is nan, expected a finite number"):
        full(FixMatch(), **{name: float("nan")})


def test_options_of_full() -> None:
    assert full(FixMatch()).full == Full()
    assert full(full(FixMatch(), alpha=2.0), beta=3.0).full == Full(alpha=2.0, beta=3.0)
    with pytest.raises(UserError, match="MixMatch has no pseudo-labels"):
        full(MixMatch())  # type: ignore[type-var]


def test_entries_carry_gradient_to_the_strong_view_only() -> None:
    views = batch(WEAK, STRONG)
    weak, strong = (view.requires_grad_() for view in views.unlabeled)
    objective(full(FixMatch()).build(echo_task(4)), views).loss.backward()
    assert weak.grad is None or not weak.grad.any()
    assert strong.grad is not None
    assert torch.isfinite(strong.grad).all()
    assert strong.grad.any()
