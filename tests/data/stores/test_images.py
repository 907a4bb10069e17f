"""Stores read by position, whatever holds the pictures."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from fullmatch.data.stores.arrow import ArrowStore
from fullmatch.data.stores.files import FileStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError
from tests.data.conftest import Draw

COLORS = [(10, 20, 30), (40, 50, 60), (70, 80, 90)]


@pytest.fixture
def files(tmp_path: Path, draw_picture: Draw) -> FileStore:
    paths = [draw_picture(tmp_path / f"{i}.png", color) for i, color in enumerate(COLORS)]
    return FileStore(paths, (8, 6))


def test_tensor_store() -> None:
    images = torch.arange(2 * 3 * 4 * 5, dtype=torch.uint8).reshape(2, 3, 4, 5)
    store = TensorStore(images)
    assert len(store) == 2 and store.shape == (3, 4, 5)
    assert store.read(torch.tensor([1, 0, 1])).equal(images[[1, 0, 1]])
    assert store.to("cpu").images.equal(images) and store.paths == ()
    assert TensorStore(images, ["a.png", "b.png"]).to("cpu").paths == ("a.png", "b.png")


@pytest.mark.parametrize("images", [torch.zeros(2, 3, 4, 5), torch.zeros(2, 3, 4).byte()])
def test_tensor_store_refuses_other_tensors(images: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="images: expected uint8"):
        TensorStore(images)


def test_file_store_reads_in_the_order_asked_for(files: FileStore) -> None:
    assert len(files) == 3 and files.shape == (3, 8, 6)
    batch = files.read(torch.tensor([2, 0, 2]))
    assert batch.shape == (3, 3, 8, 6) and batch.dtype == torch.uint8
    assert [tuple(image[:, 3, 3].tolist()) for image in batch] == [COLORS[i] for i in (2, 0, 2)]
    assert files.load().images.equal(files.read(torch.arange(3)))
    assert files.load().paths == files.paths
    assert files.read(torch.tensor([], dtype=torch.int64)).shape == (0, 3, 8, 6)


def test_processes_read_what_threads_read(files: FileStore) -> None:
    forked, index = files.forked(2), torch.tensor([2, 0, 2, 1])
    assert forked.read(index).equal(files.read(index))
    assert forked.load().images.equal(files.load().images)
    assert forked.read(index[:0]).shape == (0, 3, 8, 6) and forked.readable() == [True] * 3


@pytest.mark.parametrize("processes", [0, 2])
def test_file_that_vanishes_is_named(files: FileStore, processes: int) -> None:
    files = files.forked(processes) if processes else files
    Path(files.paths[1]).unlink()
    assert files.readable() == [True, False, True]
    with pytest.raises(UserError, match=r"1\.png"):
        files.read(torch.tensor([0, 1]))
    with pytest.raises(UserError, match=r"1\.png"):
        files.load()
    assert files.read(torch.tensor([2, 0])).shape[0] == 2


class Table:
    """What `ArrowStore` uses of a Hugging Face data set."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns, self.column_names = columns, list(columns)

    def select_columns(self, names: list[str]) -> "Table":
        return Table({name: self.columns[name] for name in names})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, rows: list[int]) -> dict[str, list[Any]]:
        return {name: [values[row] for row in rows] for name, values in self.columns.items()}


def test_arrow_store() -> None:
    pictures = [Image.new("RGB", (9, 9), color) for color in COLORS]
    store = ArrowStore(Table({"image": pictures, "label": [0, 1, 2]}), (4, 4))
    assert len(store) == 3 and store.shape == (3, 4, 4)
    batch = store.read(torch.tensor([1, 2]))
    assert batch.dtype == torch.uint8 and batch[0, :, 0, 0].tolist() == list(COLORS[1])
    with pytest.raises(UserError, match=r"no column 'img'.*image, label"):
        ArrowStore(Table({"image": pictures, "label": [0, 1, 2]}), (4, 4), column="img")


def test_arrow_store_names_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"pip install 'fullmatch\[hub\]'"):
        ArrowStore.open(tmp_path, (4, 4))
