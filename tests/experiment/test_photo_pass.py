"""Features of photos before there is a run."""

import numpy as np
import pytest
import torch

from fullmatch.data import TensorStore
from fullmatch.experiment.photo_pass import describe_stores, find_photo_weights
from tests.photos import photo


def make_store(kind: str, count: int, side: int = 64, seed: int = 0) -> TensorStore:
    pictures = [np.asarray(photo(kind, seed + at, (side, side))) for at in range(count)]
    return TensorStore(torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous())


def test_photos_of_one_kind_have_similar_features() -> None:
    shown: list[tuple[int, int]] = []
    stores = [make_store("balls", 10), make_store("bricks", 6)]
    features = describe_stores(stores, lambda done, total: shown.append((done, total)))
    assert features is not None
    assert len(features) == 16
    assert features.weights.startswith("timm:")
    assert features.descriptors.dtype == np.float16
    np.testing.assert_allclose(np.linalg.norm(features.embeddings, axis=1), 1, rtol=1e-5)
    similar = features.embeddings @ features.embeddings.T
    assert similar[:10, :10].mean() > similar[:10, 10:].mean() + 0.5
    assert shown[-1] == (16, 16)
    assert [done for done, _ in shown] == sorted(done for done, _ in shown)


def test_features_do_not_depend_on_the_batch() -> None:
    store = make_store("bricks", 9)
    whole = describe_stores([store])
    parts = describe_stores([TensorStore(store.images[:4]), TensorStore(store.images[4:])])
    assert whole is not None
    assert parts is not None
    np.testing.assert_allclose(whole.descriptors, parts.descriptors, atol=2e-3)


@pytest.mark.parametrize(
    ("channels", "side", "known"), [(3, 64, True), (3, 224, True), (3, 63, False), (1, 224, False)]
)
def test_only_photos_have_weights(channels: int, side: int, known: bool) -> None:
    assert (find_photo_weights(channels, side) is not None) == known


def test_other_pictures_have_no_features() -> None:
    assert describe_stores([TensorStore(torch.zeros(3, 1, 96, 96, dtype=torch.uint8))]) is None
    assert describe_stores([TensorStore(torch.zeros(3, 3, 32, 32, dtype=torch.uint8))]) is None
    assert describe_stores([TensorStore(torch.zeros(0, 3, 96, 96, dtype=torch.uint8))]) is None
