"""The adversarial perturbation: its length, its effect, and rows without gradient."""

import torch

from fullmatch.losses import adversarial_perturbation, kullback_leibler
from fullmatch.losses.adversarial import normalize_rows
from tests.algorithms.agreement import confident_network


def test_perturbation_has_its_length_and_beats_noise() -> None:
    torch.manual_seed(0)
    network = confident_network(4).double().eval()
    images = torch.randn(16, 1, 8, 8, dtype=torch.float64)
    probs = network(images).logits.detach().softmax(dim=1)
    change = adversarial_perturbation(
        lambda pictures: network(pictures).logits, images, probs, epsilon=0.5, iterations=4
    )
    torch.testing.assert_close(change.flatten(1).norm(dim=1), torch.full((16,), 0.5).double())
    noise = torch.randn_like(images)
    noise = 0.5 * noise / noise.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    by_chance = kullback_leibler(network(images + noise).logits, probs)
    assert kullback_leibler(network(images + change).logits, probs) > 3 * by_chance


def test_no_perturbation_if_the_prediction_ignores_the_image() -> None:
    images = torch.randn(3, 1, 4, 4)
    probs = torch.full((3, 2), 0.5)
    change = adversarial_perturbation(
        lambda pictures: torch.zeros(3, 2) + 0 * pictures.sum(), images, probs
    )
    assert not change.any()


def test_unit_length_of_gradients_too_small_to_square() -> None:
    rows = torch.randn(4, 3, 5, 5)
    torch.testing.assert_close(normalize_rows(rows * 1e-25), normalize_rows(rows))
    torch.testing.assert_close(normalize_rows(rows).flatten(1).norm(dim=1), torch.ones(4))
    assert not normalize_rows(torch.zeros(2, 3)).any()
