"""File stores decode pictures by position, in threads and in processes alike."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from fullmatch.data.stores.files import FileStore
from fullmatch.errors import UserError
from tests.data.conftest import Draw

COLORS = [(10, 20, 30), (40, 50, 60), (70, 80, 90)]


@pytest.fixture
def files(tmp_path: Path, draw_picture: Draw) -> FileStore:
    paths = [draw_picture(tmp_path / f"{i}.png", color) for i, color in enumerate(COLORS)]
    return FileStore(paths, (8, 6))


def test_reads_in_the_requested_order(files: FileStore) -> None:
    assert len(files) == 3
    assert files.shape == (3, 8, 6)
    batch = files.read(torch.tensor([2, 0, 2]))
    assert batch.shape == (3, 3, 8, 6)
    assert batch.dtype == torch.uint8
    assert [tuple(image[:, 3, 3].tolist()) for image in batch] == [COLORS[i] for i in (2, 0, 2)]
    assert files.read(torch.tensor([], dtype=torch.int64)).shape == (0, 3, 8, 6)


def test_decode_all_writes_every_picture(files: FileStore) -> None:
    pixels = torch.empty((3, *files.shape), dtype=torch.uint8)
    assert files.decode_all(pixels) == files.decode_all() == [True] * 3
    assert pixels.equal(files.read(torch.arange(3)))


def test_a_stretched_picture_keeps_its_rims(tmp_path: Path) -> None:
    wide = Image.new("L", (40, 10), 0)
    wide.paste(255, (0, 0, 5, 10))
    wide.save(tmp_path / "wide.png")
    stores = [FileStore([tmp_path / "wide.png"], (8, 8), 1, stretch=each) for each in (False, True)]
    for store in (*stores, stores[1].with_processes(1)):
        row = store.read(torch.tensor([0]))[0, 0, 4]
        assert bool(row[0] > 200) is store.stretch
        assert row[-1] == 0


def test_processes_read_the_same_pixels_as_threads(files: FileStore) -> None:
    pooled, index = files.with_processes(2), torch.tensor([2, 0, 2, 1])
    assert pooled.read(index).equal(files.read(index))
    assert pooled.paths == files.paths
    pixels = torch.empty((3, *files.shape), dtype=torch.uint8)
    assert pooled.decode_all(pixels) == pooled.decode_all() == [True] * 3
    assert pixels.equal(files.read(torch.arange(3)))
    assert pooled.read(index[:0]).shape == (0, 3, 8, 6)


@pytest.mark.parametrize("processes", [0, 2])
def test_error_names_the_file_that_is_gone(files: FileStore, processes: int) -> None:
    files = files.with_processes(processes) if processes else files
    Path(files.paths[1]).unlink()
    assert files.decode_all() == [True, False, True]
    with pytest.raises(UserError, match=r"1\.png"):
        files.read(torch.tensor([0, 1]))
    assert files.read(torch.tensor([2, 0])).shape[0] == 2
