"""Outliers are found, and ordinary pictures are not called outliers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fullmatch import data
from fullmatch.data.quality.check import check_pictures
from fullmatch.data.quality.findings import FindingKind
from fullmatch.data.quality.fingerprints import outlier_share
from fullmatch.data.quality.outliers import extract_features, find_outliers
from tests.own_pictures import COLORS, clean_folder, outlier, picture, save


def features(images: list[Image.Image]) -> np.ndarray:
    return np.stack([extract_features(np.asarray(image).transpose(2, 0, 1)) for image in images])


def test_only_outliers_are_found() -> None:
    labeled = features([picture(kind, seed) for kind in COLORS for seed in range(5)])
    usual = features([picture(kind, 500 + seed) for kind in COLORS for seed in range(40)])
    odd = features([outlier(seed) for seed in range(3)])
    is_outlier = find_outliers(labeled, np.concatenate([usual, odd]))
    assert is_outlier[-3:].all() and not is_outlier[:-3].any()


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


def test_a_run_counts_the_outliers_that_check_reports(tmp_path: Path) -> None:
    folder = clean_folder(tmp_path / "own")  # 36 unlabeled pictures
    assert outlier_share(data.SemiDataset.from_source(data.load(str(folder)))) == 0
    for seed in range(12):
        save(outlier(seed), folder / "unlabeled" / f"odd{seed}.png")
    findings = check_pictures(folder).findings
    (files,) = [finding.files for finding in findings if finding.kind == FindingKind.OUTLIERS]
    assert (
        outlier_share(data.SemiDataset.from_source(data.load(str(folder))))
        == len(files) / 48
        == 0.25
    )


def test_no_outliers_without_unlabeled_pictures(tmp_path: Path) -> None:
    source = data.load(str(clean_folder(tmp_path / "own", unlabeled=0)))
    assert outlier_share(data.SemiDataset.from_source(source)) == 0
