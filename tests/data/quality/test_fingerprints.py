"""Fingerprints recognize the same picture in different files, and count outliers as check does."""

from pathlib import Path

import numpy as np
import pytest
import torch

from fullmatch import data
from fullmatch.data.quality.check import check_pictures
from fullmatch.data.quality.findings import FindingKind
from fullmatch.data.quality.fingerprints import (
    compute_digests,
    fingerprint_files,
    ignore_progress,
    outlier_share,
)
from tests.own_pictures import clean_folder, outlier, picture, save


def test_fingerprints_of_files(tmp_path: Path) -> None:
    first = save(picture("brick", 1), tmp_path / "a.png")
    same = save(picture("brick", 1), tmp_path / "b.bmp")
    gray = save(picture("grass", 2, (30, 20)).convert("L"), tmp_path / "c.png")
    (tmp_path / "d.png").write_bytes(b"")
    paths = [str(path) for path in (first, same, tmp_path / "d.png", gray)]
    result = fingerprint_files(paths, ignore_progress)
    assert result.readable == [True, True, False, True]
    assert result.digests[0] == result.digests[1] != result.digests[2]
    assert result.sizes == [(48, 40), (48, 40), (30, 20)]
    assert not result.all_gray
    assert (len(result.hashes), len(result.thumbnails), len(result.features)) == (3, 3, 3)
    assert fingerprint_files(paths[3:], ignore_progress).all_gray


def test_fingerprints_of_no_readable_file(tmp_path: Path) -> None:
    result = fingerprint_files([str(tmp_path / "missing.png")], ignore_progress)
    assert result.readable == [False]
    assert result.digests == []
    assert result.hashes.shape == (0, 16)
    assert result.features.shape == (0, 8)


@pytest.mark.parametrize("count", [1, 501])
def test_digests_depend_on_the_pixels_only(count: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (count, 1, 4, 4), np.uint8)
    digests = compute_digests(data.TensorStore(torch.from_numpy(pixels)))
    assert len(digests) == len(set(digests)) == count
    assert compute_digests(data.TensorStore(torch.from_numpy(pixels[::-1].copy()))) == digests[::-1]


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
