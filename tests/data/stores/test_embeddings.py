"""Embeddings are read like images, but keep their type."""

import pytest
import torch

from fullmatch.data.stores.embeddings import EmbeddingStore


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_rows_are_read_as_they_are(dtype: torch.dtype) -> None:
    rows = torch.randn(5, 3, 1, 4).to(dtype)
    store = EmbeddingStore(rows)
    assert len(store) == 5
    assert store.shape == (3, 1, 4)
    assert store.paths == ()
    assert torch.equal(store.read(torch.tensor([4, 0, 0])), rows[[4, 0, 0]])
    moved = store.to("cpu")
    assert isinstance(moved, EmbeddingStore)
    assert moved.read(torch.tensor([1])).dtype == dtype


@pytest.mark.parametrize(
    "rows",
    [torch.zeros(5, 3, 1, 4, dtype=torch.uint8), torch.zeros(5, 3, 4), torch.zeros(5, 12)],
    ids=["integers", "three dimensions", "two dimensions"],
)
def test_other_tensors_are_refused(rows: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="expected floating-point numbers of shape"):
        EmbeddingStore(rows)
