"""A source becomes labeled and unlabeled positions; appearance is measured from pixels."""

import numpy as np
import pytest
import torch

from fullmatch.data import SemiDataset, draw, from_arrays
from fullmatch.data.dataset import class_order, measured_appearance
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError


def pixels(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 8, 8, 3), np.uint8)


def test_all_images_are_unlabeled_and_known_labels_are_used() -> None:
    data = SemiDataset.of(from_arrays(pixels(6), [0, -1, 1, -1, 1, 1]))
    assert data.labeled.tolist() == [0, 2, 4, 5]
    assert data.unlabeled.tolist() == list(range(6))
    assert data.class_prior == (0.25, 0.75)
    assert data.num_classes == 2


def test_split_hides_labels() -> None:
    source = from_arrays(pixels(20), np.arange(20) % 2, name="toy")
    data = SemiDataset.of(source, draw(source.labels, 4, 0, 2, "toy"))
    assert len(data.labeled) == 4 and len(data.unlabeled) == 20
    assert data.class_prior == (0.5, 0.5)
    assert data.labels.equal(source.labels)  # kept for metrics
    with pytest.raises(UserError, match="does not fit"):
        SemiDataset.of(source, draw(source.labels[:-2], 4, 0, 2, "toy"))


def test_appearance_is_that_of_the_pixels() -> None:
    images = pixels(50)
    look = measured_appearance(TensorStore(torch.from_numpy(images).permute(0, 3, 1, 2)))
    np.testing.assert_allclose(look.mean, (images / 255).mean((0, 1, 2)))
    np.testing.assert_allclose(look.std, (images / 255).std((0, 1, 2)))
    assert look.flip and look.padding == 1


def test_blank_images_have_a_deviation_to_divide_by() -> None:
    look = measured_appearance(TensorStore(torch.full((3, 1, 32, 32), 7, dtype=torch.uint8)))
    assert look.std == (1 / 255,) and look.padding == 4


def test_class_order_is_natural() -> None:
    names = ["class 10", "class 2", "Äpfel", "10", "9", "b", "A", "a"]
    assert class_order(names) == ("9", "10", "A", "a", "b", "class 2", "class 10", "Äpfel")
