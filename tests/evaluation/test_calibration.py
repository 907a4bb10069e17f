"""A temperature makes confidences truer, changes no label, and is not fitted on too little."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fullmatch.evaluation.calibration import LEAST, calibrated, calibration, fit_temperature
from fullmatch.evaluation.scores import scores


def drawn(count: int, classes: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """True probabilities, and labels drawn from them."""
    torch.manual_seed(seed)
    probs = (2 * torch.randn(count, classes)).double().softmax(dim=1)
    return probs, torch.multinomial(probs, 1)[:, 0]


@pytest.mark.parametrize("true", [0.5, 1.0, 2.0, 5.0])
def test_finds_the_temperature_that_spoiled_the_confidences(true: float) -> None:
    probs, labels = drawn(20_000, 5, seed=1)
    spoiled = calibrated(probs, 1 / true)  # sharper by that factor
    found = calibration(spoiled, labels)
    assert found.temperature == pytest.approx(true, rel=0.04)
    assert found.ece_after is not None and found.ece_after < 0.015
    torch.testing.assert_close(calibrated(spoiled, true), probs, rtol=0, atol=0.02)


def test_is_the_minimum_of_the_likelihood_it_claims() -> None:
    probs, labels = drawn(300, 4, seed=2)
    spoiled = calibrated(probs, 0.3)

    def cost(temperature: float) -> float:
        picked = calibrated(spoiled, temperature).gather(1, labels[:, None]).log()
        return -picked.sum().item() + (1 / temperature - 1) ** 2

    found = fit_temperature(spoiled, labels)
    grid = [cost(0.25 + 0.01 * step) for step in range(1000)]
    assert cost(found) <= min(grid) + 1e-6


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 80),
    classes=st.integers(2, 6),
    sharpness=st.floats(0.1, 30),
    seed=st.integers(0, 1000),
    luck=st.sampled_from(["drawn", "right", "wrong"]),
)
def test_never_worse_and_never_wild(
    count: int, classes: int, sharpness: float, seed: int, luck: str
) -> None:
    probs, labels = drawn(count, classes, seed)
    spoiled = calibrated(probs, 1 / sharpness)
    labels = {
        "drawn": labels,
        "right": spoiled.argmax(dim=1),
        "wrong": spoiled.argmin(dim=1),
    }[luck]
    found = calibration(spoiled, labels)
    assert 0.25 <= found.temperature <= 20
    after = calibrated(spoiled, found.temperature)
    assert scores(after, labels).ece <= scores(spoiled, labels).ece + 1e-9
    torch.testing.assert_close(after.sum(dim=1), torch.ones(count).double())
    assert (after.argmax(dim=1) == spoiled.argmax(dim=1)).all()


def test_few_labels_fit_nothing_and_say_so() -> None:
    probs, labels = drawn(LEAST - 1, 3, seed=0)
    found = calibration(probs, labels)
    assert found.temperature == 1 and found.ece_after is None
    assert "19 held-out labels are too few" in found.note
    assert calibration(*drawn(LEAST, 3, seed=0)).ece_after is not None


def test_certainty_of_zero_and_one_stays_finite() -> None:
    probs = torch.eye(3).repeat(10, 1)
    wrong = torch.arange(30) // 10
    found = calibration(probs, wrong)
    assert found.temperature > 2
    assert calibrated(probs, found.temperature).isfinite().all()


def test_result_is_plain_json() -> None:
    found = calibration(*drawn(50, 3, seed=0)).as_result()
    assert json.loads(json.dumps(found)) == found
    assert set(found) == {"temperature", "calibration"} and found["calibration"]["images"] == 50
    assert found["temperature"] > 0
    assert calibration(*drawn(5, 3, seed=0)).as_result()["temperature"] is None


@pytest.mark.parametrize("labels", [torch.zeros(2), torch.zeros(0), torch.zeros(3, 1)])
def test_shapes_are_checked(labels: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"probs, labels: given shapes"):
        fit_temperature(torch.full((len(labels) and 3, 2), 0.5), labels.long())
