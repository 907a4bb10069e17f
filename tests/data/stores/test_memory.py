"""Tensor stores read images in memory by position."""

import pytest
import torch

from fullmatch.data.stores.memory import TensorStore


def test_tensor_store() -> None:
    images = torch.arange(2 * 3 * 4 * 5, dtype=torch.uint8).reshape(2, 3, 4, 5)
    store = TensorStore(images)
    assert len(store) == 2
    assert store.shape == (3, 4, 5)
    assert store.read(torch.tensor([1, 0, 1])).equal(images[[1, 0, 1]])
    assert store.to("cpu").images.equal(images)
    assert store.paths == ()
    assert TensorStore(images, ["a.png", "b.png"]).to("cpu").paths == ("a.png", "b.png")


@pytest.mark.parametrize("images", [torch.zeros(2, 3, 4, 5), torch.zeros(2, 3, 4).byte()])
def test_other_tensors_are_rejected(images: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="images: expected uint8"):
        TensorStore(images)
