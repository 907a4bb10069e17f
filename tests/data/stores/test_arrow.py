"""Arrow stores read the picture column of a Hugging Face data set."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from fullmatch.data.stores.arrow import ArrowStore
from fullmatch.errors import UserError

COLORS = [(10, 20, 30), (40, 50, 60), (70, 80, 90)]


class Table:
    """The part of a Hugging Face data set that `ArrowStore` uses."""

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
    assert len(store) == 3
    assert store.shape == (3, 4, 4)
    assert store.paths == ()
    batch = store.read(torch.tensor([1, 2]))
    assert batch.dtype == torch.uint8
    assert batch[0, :, 0, 0].tolist() == list(COLORS[1])
    with pytest.raises(UserError, match=r"no column 'img'.*image, label"):
        ArrowStore(Table({"image": pictures, "label": [0, 1, 2]}), (4, 4), column="img")


def test_error_names_the_missing_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"pip install 'fullmatch\[hub\]'"):
        ArrowStore.open(tmp_path, (4, 4))
