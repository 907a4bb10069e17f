"""Outliers and labels that look wrong, from the features of a run."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from fullmatch.inference.picture_map import map_run
from fullmatch.inference.run_findings import find_in_run, store_findings
from fullmatch.storage.features import Part, PictureFeatures, write_features
from fullmatch.storage.findings import OutlierPicture
from fullmatch.storage.run_folder import RunFolder
from tests.picture_maps import make_features, make_probabilities


def many_labels(seed: int = 0) -> PictureFeatures:
    """Half of the 240 pictures are labeled, a sixth is for the test."""
    features = make_features(240, seed=seed)
    parts = features.parts.copy()
    parts[:100] = Part.LABELED
    labels = np.where(parts == Part.UNLABELED, -1, np.arange(240) % 3)
    return replace(features, parts=parts, labels=labels)


def swap(features: PictureFeatures, *rows: int) -> PictureFeatures:
    labels = features.labels.copy()
    labels[list(rows)] = (labels[list(rows)] + 1) % 3
    return replace(features, labels=labels)


def test_swapped_labels_of_training_and_test() -> None:
    assert find_in_run(many_labels()).suspect_labels == ()
    features = swap(many_labels(), 5, 42, 230)
    suspects = find_in_run(features).suspect_labels
    assert [each.row for each in suspects[-1:]] == [230]  # those of the test come last
    assert {each.row for each in suspects} == {5, 42, 230}
    for each in suspects:
        assert each.name == features.names[each.row]
        assert each.label == features.classes[features.labels[each.row]]
        assert each.looks_like == features.classes[each.row % 3]
        assert 0.5 < each.probability <= 1


def test_labels_of_the_test_do_not_judge_those_of_training() -> None:
    features = swap(many_labels(), 5)
    training = [each for each in find_in_run(features).suspect_labels if each.row < 200]
    wrong = replace(features, labels=np.where(features.parts == Part.TEST, 0, features.labels))
    assert [each for each in find_in_run(wrong).suspect_labels if each.row < 200] == training


def test_outliers_are_unlabeled() -> None:
    features = many_labels()
    rows = features.features.copy()
    unusual = np.linalg.svd(rows)[2][-1]  # what the rows have least of
    rows[[7, 151, 235]] = [unusual, -unusual, unusual]
    outliers = find_in_run(replace(features, features=rows)).outliers
    assert outliers[0] == OutlierPicture(151, features.names[151])
    assert len(outliers) < 10
    assert all(features.parts[each.row] == Part.UNLABELED for each in outliers)


def test_stored_once_and_shown_on_the_map(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert store_findings(folder) is None
    assert not map_run(folder)
    features = swap(many_labels(), 5)
    probabilities = make_probabilities(features).astype(np.float32)
    write_features(folder.features, replace(features, probabilities=probabilities))
    assert map_run(folder)
    findings = folder.read_findings()
    assert findings is not None
    picture_map = folder.read_map()
    assert picture_map is not None
    assert np.flatnonzero(picture_map.suspect).tolist() == [5]
    outliers = sorted(each.row for each in findings.outliers)
    assert np.flatnonzero(picture_map.outlier).tolist() == outliers
    before = folder.findings.stat().st_mtime_ns
    assert store_findings(folder) == findings
    assert folder.findings.stat().st_mtime_ns == before
