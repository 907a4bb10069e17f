"""Outliers are found, and ordinary pictures are not called outliers."""

import numpy as np
import pytest
import torch
from PIL import Image

from fullmatch import data
from fullmatch.data.quality.outliers import extract_features, find_outliers
from tests.own_pictures import COLORS, outlier, picture


def features(images: list[Image.Image]) -> np.ndarray:
    return np.stack([extract_features(np.asarray(image).transpose(2, 0, 1)) for image in images])


def test_only_outliers_are_found() -> None:
    labeled = features([picture(kind, seed) for kind in COLORS for seed in range(5)])
    usual = features([picture(kind, 500 + seed) for kind in COLORS for seed in range(40)])
    odd = features([outlier(seed) for seed in range(3)])
    is_outlier = find_outliers(labeled, np.concatenate([usual, odd]))
    assert is_outlier[-3:].all()
    assert not is_outlier[:-3].any()


@pytest.mark.parametrize("seed", range(5))
def test_digits_are_not_outliers_to_forty_of_them(seed: int) -> None:
    store = data.load("digits").images
    pixels = store.read(torch.arange(len(store))).repeat(1, 3, 1, 1).numpy()
    every = np.stack([extract_features(one) for one in pixels])
    some = np.random.default_rng(seed).choice(len(every), 40, replace=False)
    assert find_outliers(every[some], every).mean() < 0.01


def test_too_few_labeled_pictures() -> None:
    labeled = features([picture("brick", seed) for seed in range(9)])
    assert not find_outliers(labeled, features([outlier(0)])).any()
    assert find_outliers(labeled, np.empty((0, 8))).shape == (0,)
