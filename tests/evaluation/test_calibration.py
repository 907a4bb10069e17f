"""A temperature improves confidences, changes no prediction, and needs enough labels."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fullmatch.evaluation.calibration import LEAST, apply_temperature, calibrate, fit_temperature
from fullmatch.evaluation.scores import compute_scores


def draw(count: int, classes: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """True probabilities, and labels drawn from them."""
    torch.manual_seed(seed)
    probs = (2 * torch.randn(count, classes)).double().softmax(dim=1)
    return probs, torch.multinomial(probs, 1)[:, 0]


@pytest.mark.parametrize("true", [0.5, 1.0, 2.0, 5.0])
def test_recovers_a_known_temperature(true: float) -> None:
    probs, labels = draw(20_000, 5, seed=1)
    spoiled = apply_temperature(probs, 1 / true)  # sharper by that factor
    calibration = calibrate(spoiled, labels)
    assert calibration.temperature == pytest.approx(true, rel=0.04)
    assert calibration.ece_after is not None
    assert calibration.ece_after < 0.015
    assert calibration.images == 20_000
    torch.testing.assert_close(apply_temperature(spoiled, true), probs, rtol=0, atol=0.02)


def test_is_the_minimum_of_the_likelihood_it_claims() -> None:
    probs, labels = draw(300, 4, seed=2)
    spoiled = apply_temperature(probs, 0.3)

    def cost(temperature: float) -> float:
        picked = apply_temperature(spoiled, temperature).gather(1, labels[:, None]).log()
        return -picked.sum().item() + (1 / temperature - 1) ** 2

    fitted = fit_temperature(spoiled, labels)
    grid = [cost(0.25 + 0.01 * step) for step in range(1000)]
    assert cost(fitted) <= min(grid) + 1e-6


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 80),
    classes=st.integers(2, 6),
    sharpness=st.floats(0.1, 30),
    seed=st.integers(0, 1000),
    luck=st.sampled_from(["drawn", "right", "wrong"]),
)
def test_never_worse_and_within_limits(
    count: int, classes: int, sharpness: float, seed: int, luck: str
) -> None:
    probs, labels = draw(count, classes, seed)
    spoiled = apply_temperature(probs, 1 / sharpness)
    labels = {
        "drawn": labels,
        "right": spoiled.argmax(dim=1),
        "wrong": spoiled.argmin(dim=1),
    }[luck]
    temperature = calibrate(spoiled, labels).temperature
    if count < LEAST:
        assert temperature is None
        return
    assert temperature is not None
    assert 0.25 <= temperature <= 20
    after = apply_temperature(spoiled, temperature)
    assert compute_scores(after, labels).ece <= compute_scores(spoiled, labels).ece + 1e-9
    torch.testing.assert_close(after.sum(dim=1), torch.ones(count).double())
    assert (after.argmax(dim=1) == spoiled.argmax(dim=1)).all()


def test_too_few_labels_to_fit() -> None:
    probs, labels = draw(LEAST - 1, 3, seed=0)
    calibration = calibrate(probs, labels)
    assert calibration.temperature is None
    assert calibration.ece_after is None
    assert calibration.note == "19 held-out labels are too few, at least 20 are needed"
    assert calibrate(*draw(LEAST, 3, seed=0)).ece_after is not None


def test_confidences_that_no_temperature_improves_are_left_unchanged() -> None:
    probs, labels = draw(40, 3, seed=0)
    calibration = calibrate(probs, labels)
    assert calibration.temperature == 1
    assert calibration.note.startswith("left unchanged")
    assert calibration.ece_before == calibration.ece_after == compute_scores(probs, labels).ece
    fitted = apply_temperature(probs, fit_temperature(probs, labels))
    assert compute_scores(fitted, labels).ece > compute_scores(probs, labels).ece


def test_certainty_of_zero_and_one_stays_finite() -> None:
    probs = torch.eye(3).repeat(10, 1)
    wrong = torch.arange(30) // 10
    temperature = calibrate(probs, wrong).temperature
    assert temperature is not None
    assert temperature > 2
    assert apply_temperature(probs, temperature).isfinite().all()


@pytest.mark.parametrize("labels", [torch.zeros(2), torch.zeros(0), torch.zeros(3, 1)])
def test_shapes_are_checked(labels: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"probs, labels: got shapes"):
        fit_temperature(torch.full((len(labels) and 3, 2), 0.5), labels.long())
