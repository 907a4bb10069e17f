"""Arrays, Hugging Face data sets, Parquet files and tar shards give the same source."""

from pathlib import Path

import numpy as np
import pytest
import torch

from fullmatch import data
from fullmatch.data import Source
from fullmatch.data.sources.picture_tables import from_table, list_encoded
from fullmatch.data.stores.encoded import EncodedStore
from fullmatch.errors import UserError
from tests.encoded_pictures import (
    encode,
    hub_dataset,
    members,
    noise,
    save_hub,
    write_parquet,
    write_shard,
)

PIXELS, LABELS = noise(12), [0, 1, 0, 1, -1, -1, -1, -1]
TEST_LABELS = [1, 0, 0, 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same pictures in every form; shards and Parquet files are divided in two."""
    folder, files = tmp_path_factory.mktemp("forms"), [encode(pixels) for pixels in PIXELS]
    np.savez(
        folder / "arrays.npz",
        train_x=PIXELS[:8],
        train_y=LABELS,
        test_x=PIXELS[8:],
        test_y=TEST_LABELS,
    )
    splits = {
        "train": hub_dataset(PIXELS[:8], LABELS, "01"),
        "test": hub_dataset(PIXELS[8:], TEST_LABELS, "01"),
    }
    save_hub(folder / "saved", splits)
    for name, part in (("train-0", slice(0, 5)), ("train-1", slice(5, 8))):
        write_parquet(folder / f"{name}.parquet", files[part], LABELS[part])
        write_shard(folder / f"{name}.tar", members(files[part], LABELS[part]))
    write_parquet(folder / "test-0.parquet", files[8:], TEST_LABELS)
    write_shard(folder / "test-0.tar", members(files[8:], TEST_LABELS))
    return folder


FORMS = ("hf:{}/saved", "{}/*.parquet", "hf:{}/", "{}/{{train-{{0..1}},test-0}}.tar")


def load(folder: Path, form: str) -> Source:
    if form == "hf:{}/":  # of Parquet files only, since `saved` is beside them
        (folder / "hub").mkdir(exist_ok=True)
        for file in folder.glob("*.parquet"):
            (folder / "hub" / file.name).write_bytes(file.read_bytes())
        return data.load(f"hf:{folder}/hub")
    return data.load(form.format(folder))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_source(folder: Path, form: str) -> None:
    arrays, source = data.load(str(folder / "arrays.npz")), load(folder, form)
    assert source.images.read(torch.arange(8)).equal(arrays.images.read(torch.arange(8)))
    assert source.labels.equal(arrays.labels)
    assert source.test is not None
    assert arrays.test is not None
    assert source.test.read(torch.arange(4)).equal(arrays.test.read(torch.arange(4)))
    assert source.test_labels is not None
    assert source.test_labels.tolist() == TEST_LABELS
    assert source.classes == arrays.classes == ("0", "1")
    assert source.appearance == arrays.appearance


def test_large_tables_stay_encoded(folder: Path) -> None:
    for form in ("hf:{}/saved", "{}/*.parquet", "{}/*.tar"):
        small = from_table(form.format(folder))
        large = from_table(form.format(folder), max_bytes=100)
        assert isinstance(large.images, EncodedStore)
        assert isinstance(large.test, EncodedStore)
        assert large.images.read(torch.arange(8)).equal(small.images.read(torch.arange(8)))
        assert large.labels.equal(small.labels)
        assert large.appearance == small.appearance


def test_size_and_unknown_classes(folder: Path) -> None:
    source = data.load(f"{folder}/*.tar", size=16)
    assert source.images.shape == (1, 16, 16)
    with pytest.raises(UserError, match="leaves only the class '0'"):
        data.load(f"{folder}/*.tar", unknown_classes=["1"])


def test_all_pictures_of_all_splits(folder: Path) -> None:
    assert len(list_encoded(f"{folder}/*.tar")) == 12


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such file: .*a.parquet"):
        data.load(str(tmp_path / "a.parquet"))
    with pytest.raises(UserError, match="no such folder or file"):
        data.load(f"hf:{tmp_path}/missing")
