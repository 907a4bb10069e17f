"""Encoded pictures of several files are one store, which threads and processes read alike."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from fullmatch.data.sources.shards import read_shard
from fullmatch.data.stores.arrow import ArrowPictures
from fullmatch.data.stores.encoded import (
    EncodedPictures,
    EncodedStore,
    JoinedPictures,
    PictureSubset,
    open_all,
)
from fullmatch.data.stores.tar import TarPictures
from fullmatch.errors import UserError
from tests.encoded_pictures import encode, members, noise, write_parquet, write_shard

PIXELS = noise(5)


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> JoinedPictures:
    """Two pictures in a table, three in a shard."""
    folder, files = tmp_path_factory.mktemp("encoded"), [encode(pixels) for pixels in PIXELS]
    table = ArrowPictures(write_parquet(folder / "a.parquet", files[:2]), "image")
    shard = read_shard(write_shard(folder / "b.tar", members(files[2:], "abc"))).pictures
    assert isinstance(shard, TarPictures)
    return JoinedPictures([table, PictureSubset(table, np.empty(0, np.int64)), shard])


def read_all(encoded: EncodedPictures) -> torch.Tensor:
    return EncodedStore(encoded, (8, 8), 1).read(torch.arange(len(encoded)))


def test_files_are_read_in_any_order(joined: JoinedPictures) -> None:
    store = EncodedStore(joined, (8, 8), 1)
    assert (len(store), store.shape, store.paths) == (5, (1, 8, 8), ())
    for index in ([4, 0, 2], [1], []):
        batch = store.read(torch.tensor(index, dtype=torch.int64))
        assert batch[:, 0].equal(torch.from_numpy(PIXELS[np.array(index, int)]))


def test_processes_read_the_same(joined: JoinedPictures) -> None:
    store = EncodedStore(joined, (8, 8), 1)
    index = torch.tensor([4, 0, 2, 2, 1])
    assert store.with_processes(2).read(index).equal(store.read(index))


def test_another_process_opens_the_files_itself(joined: JoinedPictures) -> None:
    content = pickle.dumps(joined)
    assert len(content) < 2000
    copy = pickle.loads(content)
    assert read_all(copy).equal(read_all(joined))
    assert [each.describe() for each in open_all(copy)] == [
        each.describe() for each in open_all(joined)
    ]


def test_subsets(joined: JoinedPictures) -> None:
    subset = PictureSubset(joined, np.array([3, 1]))
    assert len(subset) == 2
    assert subset.describe(0) == joined.describe(3)
    assert read_all(subset).equal(read_all(joined)[[3, 1]])


def test_places_are_named(joined: JoinedPictures) -> None:
    names = [Path(each.describe()).name for each in open_all(joined)]
    assert names == [
        *("a.parquet, row 0", "a.parquet, row 1"),
        *("b.tar, 0000.png", "b.tar, 0001.png", "b.tar, 0002.png"),
    ]


@pytest.mark.parametrize("processes", [0, 1])
def test_error_names_file_and_row(tmp_path: Path, processes: int) -> None:
    path = write_parquet(tmp_path / "a.parquet", [encode(PIXELS[0]), b"damaged", None])
    store = EncodedStore(ArrowPictures(path, "image"), (8, 8), 1)
    store = store.with_processes(processes) if processes else store
    assert store.decode_all() == [True, False, False]
    for row in (1, 2):
        with pytest.raises(UserError, match=rf"cannot read the picture .*a.parquet, row {row} "):
            store.read(torch.tensor([0, row]))
