"""The benchmark of features: every method is tested on the same rows."""

import numpy as np
import pytest

from benchmarks import estimator_features


@pytest.mark.parametrize("name", estimator_features.LABELS)
def test_every_class_has_as_many_labels(name: str) -> None:
    rows = estimator_features.split(name, seed=0)
    known = rows.labels[rows.labels >= 0]
    counts = np.bincount(known)
    assert len(known) == estimator_features.LABELS[name]
    assert len(set(counts.tolist())) == 1
    assert len(rows.train) == len(rows.labels) == pytest.approx(3 * len(rows.test), rel=0.01)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of LabelSpreading
def test_table() -> None:
    lines = estimator_features.table(["blobs"], [0]).splitlines()
    assert lines[0] == "| | blobs, 24 labels |"
    assert len(lines) == 2 + len(estimator_features.METHODS)
    assert all(line.endswith("± 0.0 |") for line in lines[2:])
