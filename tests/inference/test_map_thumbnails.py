"""Thumbnails for the map: of the right pictures, small, and apart from each other."""

import io
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fullmatch.core import Appearance
from fullmatch.data import Source, TensorStore
from fullmatch.errors import UserError
from fullmatch.inference import map_thumbnails
from fullmatch.inference.album import load_pictures, load_source
from fullmatch.inference.map_thumbnails import make_thumbnails
from fullmatch.reports.map import render_map
from fullmatch.storage.features import Part
from fullmatch.storage.picture_map import PictureMap, Thumbnails, write_map
from fullmatch.storage.runs import read_run
from tests.picture_maps import make_map
from tests.trained_runs import train_digits, train_pets
from tests.written_runs import write_run


def make_source(images: torch.Tensor, tests: int = 0, paths: tuple[str, ...] = ()) -> Source:
    """The last `tests` images are the test images."""
    count = len(images) - tests
    return Source(
        name="synthetic",
        images=TensorStore(images[:count], list(paths[:count])),
        labels=torch.full((count,), -1),
        test=TensorStore(images[count:], list(paths[count:])) if tests else None,
        test_labels=torch.zeros(tests, dtype=torch.int64) if tests else None,
        classes=("cat", "dog", "fox"),
        appearance=Appearance(mean=(0.5,), std=(0.5,), flip=False, padding=1),
    )


def make_gray_source(count: int, tests: int, shape: tuple[int, int, int] = (1, 8, 8)) -> Source:
    """Picture n is one shade of gray, 4 * n modulo 256."""
    shades = (4 * torch.arange(count) % 256).byte()
    return make_source(shades[:, None, None, None].expand(-1, *shape).clone(), tests)


def cut_tile(thumbnails: Thumbnails, number: int) -> np.ndarray:
    sheet = Image.open(io.BytesIO(thumbnails.sheets[number // thumbnails.per_sheet]))
    place = number % thumbnails.per_sheet
    left = place % thumbnails.columns * thumbnails.cell[0]
    top = place // thumbnails.columns * thumbnails.cell[1]
    width, height = thumbnails.tile
    return np.asarray(sheet)[top : top + height, left : left + width]


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 20, 31), (3, 90, 70)])
def test_every_tile_shows_its_picture(shape: tuple[int, int, int]) -> None:
    picture_map = make_map(300)
    source = make_gray_source(300, tests=50, shape=shape)
    thumbnails = make_thumbnails(picture_map, source)
    assert thumbnails.rows.tolist() == list(range(300))
    assert len(thumbnails.sheets) == 2
    for number in range(300):
        tile = cut_tile(thumbnails, number)
        assert tile.shape[:2] == thumbnails.tile[::-1]
        shade = 4 * number % 256
        assert np.abs(tile.astype(int) - shade).max() <= 4, number  # no trace of neighbors


def test_shrunk_but_never_enlarged() -> None:
    picture_map = make_map(20)
    tiles = {
        shape: make_thumbnails(picture_map, make_gray_source(20, 3, shape)).tile
        for shape in [(3, 224, 224), (3, 100, 200), (1, 28, 28), (3, 1, 500)]
    }
    assert list(tiles.values()) == [(64, 64), (64, 32), (28, 28), (64, 1)]
    assert map_thumbnails.tile_size((3, 224, 224), map_thumbnails.FEW + 1) == (48, 48)


def test_at_most_so_many_and_the_odd_ones_first() -> None:
    picture_map = make_map(60)
    thumbnails = make_thumbnails(picture_map, make_gray_source(60, 10), most=40)
    assert thumbnails.rows.tolist() == picture_map.choose_rows(40).tolist()
    assert set(np.flatnonzero(picture_map.outlier)) <= set(thumbnails.rows.tolist())
    last = len(thumbnails.rows) - 1
    assert abs(int(cut_tile(thumbnails, last).mean()) - 4 * int(thumbnails.rows[last])) <= 4


def test_other_pictures_are_noticed() -> None:
    picture_map = make_map(60)
    make_thumbnails(picture_map, make_gray_source(60, 10))
    for source in (
        make_gray_source(61, 10),
        make_gray_source(60, 11),
        make_gray_source(50, 0),
        make_source(torch.zeros(60, 1, 8, 8).byte(), 10, tuple(f"/{n}.png" for n in range(60))),
    ):
        with pytest.raises(UserError, match="they have changed since this run"):
            make_thumbnails(picture_map, source)
    moved = tuple(f"/elsewhere/{name}" for name in picture_map.names)
    make_thumbnails(picture_map, make_source(torch.zeros(60, 1, 8, 8).byte(), 10, moved))


def test_a_map_without_test_pictures() -> None:
    picture_map = make_map(60).take(np.arange(50))
    assert not (picture_map.parts == Part.TEST).any()
    thumbnails = make_thumbnails(picture_map, make_gray_source(60, tests=10))
    assert len(thumbnails.rows) == 50


def test_a_page_of_20000_noisy_pictures_is_not_too_large() -> None:
    """Noise is the worst case for JPEG."""
    picture_map = make_map(20_000)
    names = tuple(f"unlabeled/camera 3/2024-05-17/IMG_{n:08d}.jpeg" for n in range(20_000))
    picture_map = replace(picture_map, names=names)
    noise = torch.randint(0, 256, (64, 3, 48, 48), generator=torch.manual_seed(0)).byte()
    images = noise[torch.arange(20_000) % 64]
    thumbnails = make_thumbnails(picture_map, make_source(images, 3333))
    assert len(thumbnails.rows) == 6000
    assert thumbnails.tile == (48, 48)
    assert len(render_map(picture_map, thumbnails)) < 12_000_000


def map_of_source(source: Source) -> PictureMap:
    """A map with as many pictures as a source, and their names."""
    count, tests = len(source.images), len(source.test or ())
    picture_map = make_map(count + tests, classes=source.classes)
    parts = np.full(count + tests, Part.UNLABELED, np.uint8)
    parts[count:] = Part.TEST
    paths = (*source.images.paths, *(source.test.paths if source.test else ()))
    return replace(picture_map, parts=parts, names=paths or picture_map.names)


@pytest.mark.parametrize("train", [train_digits, train_pets])
def test_pictures_of_a_run(train: object, tmp_path: Path) -> None:
    assert callable(train)
    run = read_run(shutil.copytree(train(), tmp_path / "run"))
    album, missing, thumbnails = load_pictures(run)
    assert album is not None
    assert not missing
    assert not thumbnails.sheets
    source = load_source(run)
    write_map(run.folder.map, map_of_source(source))
    album, missing, thumbnails = load_pictures(run)
    assert album is not None
    assert not missing
    assert not thumbnails.missing
    assert len(thumbnails.rows) == len(source.images) + len(source.test or ())
    pixels = source.images.read(torch.tensor([5]))[0].numpy().transpose(1, 2, 0)
    tile = cut_tile(thumbnails, 5).reshape(pixels.shape)
    assert np.abs(tile.astype(int) - pixels).mean() < 40
    with_source = load_pictures(run, source)[2]
    assert with_source.sheets == thumbnails.sheets


def test_pictures_that_are_gone(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run"))
    write_map(run.folder.map, make_map())
    album, missing, thumbnails = load_pictures(run)
    assert album is None
    assert "is gone" in missing
    assert thumbnails.missing.startswith("The pictures cannot be shown: pets, which ")
    unfinished = read_run(write_run(tmp_path / "unfinished", finished=False))
    assert load_pictures(unfinished)[:2] == (None, "")
