"""Foreign pictures are found, and ordinary ones are left in peace."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fullmatch import data
from fullmatch.data.quality.check import examine
from fullmatch.data.quality.fingerprints import foreign_share
from fullmatch.data.quality.outliers import look, strangers
from tests.own_pictures import COLORS, clean_folder, picture, save, stranger


def features(images: list[Image.Image]) -> np.ndarray:
    return np.stack([look(np.asarray(image).transpose(2, 0, 1)) for image in images])


def test_only_the_foreign_ones() -> None:
    labeled = features([picture(kind, seed) for kind in COLORS for seed in range(5)])
    usual = features([picture(kind, 500 + seed) for kind in COLORS for seed in range(40)])
    odd = features([stranger(seed) for seed in range(3)])
    found = strangers(labeled, np.concatenate([usual, odd]))
    assert found[-3:].all() and not found[:-3].any()


@pytest.mark.parametrize("seed", range(5))
def test_digits_are_no_strangers_to_forty_of_them(seed: int) -> None:
    store = data.load("digits").images
    pixels = store.read(torch.arange(len(store))).repeat(1, 3, 1, 1).numpy()
    every = np.stack([look(one) for one in pixels])
    some = np.random.default_rng(seed).choice(len(every), 40, replace=False)
    assert strangers(every[some], every).mean() < 0.01


def test_too_few_to_say_anything() -> None:
    labeled = features([picture("brick", seed) for seed in range(9)])
    assert not strangers(labeled, features([stranger(0)])).any()
    assert strangers(labeled, np.empty((0, 8))).shape == (0,)


def test_a_run_counts_those_that_check_names(tmp_path: Path) -> None:
    folder = clean_folder(tmp_path / "own")  # 36 unlabeled pictures
    assert foreign_share(data.SemiDataset.of(data.load(str(folder)))) == 0
    for seed in range(12):
        save(stranger(seed), folder / "unlabeled" / f"odd{seed}.png")
    (named,) = [remark.files for remark in examine(folder).remarks if remark.kind == "strangers"]
    assert foreign_share(data.SemiDataset.of(data.load(str(folder)))) == len(named) / 48 == 0.25


def test_without_unlabeled_pictures_none_is_foreign(tmp_path: Path) -> None:
    source = data.load(str(clean_folder(tmp_path / "own", unlabeled=0)))
    assert foreign_share(data.SemiDataset.of(source)) == 0
