"""The estimator on rows of features: of texts, sounds, or anything else."""

import pickle
import random
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fullmatch import Classifier
from fullmatch.estimator import FullMatchClassifier
from tests.estimator.checks import run_checks

QUICK: dict[str, Any] = {"steps": 2}
EXPECTED_TO_FAIL = {
    "check_classifiers_classes": "it names a class -1, which here means unlabeled",
}


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, classes, and classes of which nine in ten are hidden."""
    rows, classes = make_blobs(120, n_features=6, centers=3, cluster_std=2.0, random_state=0)
    return rows, classes, np.where(np.arange(120) % 10 == 0, classes, -1)


@pytest.fixture(scope="module")
def fitted(blobs: Any) -> FullMatchClassifier:
    rows, _, few = blobs
    return FullMatchClassifier(**QUICK).fit(rows, few)


def test_checks_of_scikit_learn() -> None:
    status = run_checks(FullMatchClassifier(**QUICK), EXPECTED_TO_FAIL)
    assert not status["failed"]
    assert set(status["xfail"]) == set(EXPECTED_TO_FAIL)
    assert len(status["passed"]) > 40


def test_unlabeled_rows_help() -> None:
    """Of digits, without telling that they are pictures."""
    rows, digits = load_digits(return_X_y=True)
    labels = np.full(len(rows), -1)
    for digit in range(10):
        labels[np.flatnonzero(digits == digit)[:4]] = digit
    known, rest = labels >= 0, labels < 0
    linear = LogisticRegression(max_iter=2000).fit(rows[known], labels[known])
    ours = FullMatchClassifier().fit(rows, labels)
    assert ours.score(rows[rest], digits[rest]) > linear.score(rows[rest], digits[rest]) + 0.03
    assert not hasattr(ours, "image_shape_")


def test_classes_that_no_plane_separates() -> None:
    rows, classes = make_moons(300, noise=0.08, random_state=0)
    labels = np.where(np.arange(300) < 20, classes, -1)
    assert FullMatchClassifier(**QUICK).fit(rows, labels).score(rows, classes) > 0.95


def test_strategies_are_compared(fitted: FullMatchClassifier) -> None:
    names = [each.name for each in fitted.strategies_]
    assert names == ["labels only", "propagated labels", "propagated labels, then training"]
    assert sum(each.chosen for each in fitted.strategies_) == 1


def test_same_seed_same_model(blobs: Any, fitted: FullMatchClassifier) -> None:
    rows, _, few = blobs
    again = clone(fitted).fit(rows, few)
    assert (again.predict_proba(rows) == fitted.predict_proba(rows)).all()
    np.testing.assert_allclose(fitted.predict_proba(rows).sum(axis=1), 1, atol=1e-6)


def test_a_row_is_predicted_by_itself(blobs: Any, fitted: FullMatchClassifier) -> None:
    rows = blobs[0]
    single = np.concatenate([fitted.predict_proba(row[None]) for row in rows[:20]])
    np.testing.assert_allclose(single, fitted.predict_proba(rows)[:20], rtol=1e-7)


def test_fit_is_quiet_and_leaves_no_trace(
    blobs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, _, few = blobs
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    original = rows.copy()
    before = torch.get_rng_state(), str(np.random.get_state()), random.getstate()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FullMatchClassifier(**QUICK).fit(rows, few).predict(rows)
    assert (torch.get_rng_state() == before[0]).all()
    assert (str(np.random.get_state()), random.getstate()) == before[1:]
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr() == ("", "")
    assert (rows == original).all()


def test_threads_fit_one_after_another(blobs: Any, fitted: FullMatchClassifier) -> None:
    rows, _, few = blobs
    with ThreadPoolExecutor(2) as threads:
        fits = list(threads.map(lambda _: clone(fitted).fit(rows, few), range(2)))
    for each in fits:
        assert (each.predict_proba(rows) == fitted.predict_proba(rows)).all()


def test_pickle_pipeline_and_search(blobs: Any, fitted: FullMatchClassifier) -> None:
    rows, _, few = blobs
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict_proba(rows) == fitted.predict_proba(rows)).all()
    pipeline = make_pipeline(StandardScaler(), clone(fitted)).fit(rows, few)
    assert pipeline.predict(rows).shape == (120,)
    search = GridSearchCV(clone(fitted), {"steps": [1, 2]}, cv=2, error_score="raise")
    assert search.fit(rows, few).best_params_["steps"] in (1, 2)


def test_the_model_in_a_file(blobs: Any, fitted: FullMatchClassifier, tmp_path: Path) -> None:
    rows = blobs[0]
    path = tmp_path / "model.safetensors"
    fitted.save(path)
    saved = Classifier.load(path)
    assert saved.classes == ("0", "1", "2")
    with torch.no_grad():
        probabilities = saved(torch.from_numpy(rows)[:, None, None])
    np.testing.assert_allclose(probabilities.numpy(), fitted.predict_proba(rows), atol=1e-5)


def test_names_of_columns(blobs: Any) -> None:
    rows, _, few = blobs
    frame = pd.DataFrame(rows, columns=[f"part {n}" for n in range(6)])
    fitted = FullMatchClassifier(**QUICK).fit(frame, few)
    assert fitted.n_features_in_ == 6
    assert list(fitted.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, bool])
def test_numbers_of_every_kind(blobs: Any, dtype: type) -> None:
    rows, _, few = blobs
    converted = (rows > 0) if dtype is bool else rows.astype(dtype)
    assert FullMatchClassifier(**QUICK).fit(converted, few).predict(converted).shape == (120,)


@pytest.mark.parametrize(("scale", "offset"), [(1e-8, 0.0), (1e8, 0.0), (1.0, -1e6), (1e200, 0.0)])
def test_scale_and_offset_do_not_matter(
    blobs: Any, fitted: FullMatchClassifier, scale: float, offset: float
) -> None:
    rows, _, few = blobs
    moved = rows * scale + offset
    again = clone(fitted).fit(moved, few)
    agree = again.predict(moved) == fitted.predict(rows)
    assert agree.mean() > 0.95


def test_columns_in_different_units(blobs: Any) -> None:
    rows, classes, few = blobs
    mixed = np.concatenate([rows, np.random.default_rng(0).normal(0, 1e5, (120, 1))], axis=1)
    assert FullMatchClassifier(**QUICK).fit(mixed, few).score(mixed, classes) > 0.9


def test_equal_rows_with_different_labels() -> None:
    """Unlike pictures, they may be different samples: none is left out."""
    rows = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    labels = np.concatenate([np.zeros(18), [1, 1], np.ones(18), [0, 0]])
    fitted = FullMatchClassifier(**QUICK).fit(rows, labels)
    assert fitted.predict([[0.0, 1.0], [1.0, 0.0]]).tolist() == [0, 1]


@pytest.mark.parametrize("counts", [(1, 1), (2, 1), (3, 1, 1), (2, 2)])
def test_fewer_labels_than_folds(blobs: Any, counts: tuple[int, ...]) -> None:
    rows, classes, _ = blobs
    labels = np.full(len(rows), -1)
    for code, count in enumerate(counts):
        labels[np.flatnonzero(classes == code)[:count]] = code
    fitted = FullMatchClassifier(**QUICK).fit(rows, labels)
    assert set(fitted.predict(rows)) <= set(range(len(counts)))
    assert (len(fitted.strategies_) > 0) is (max(counts) > 1)


def test_labels_only() -> None:
    """Without a single unlabeled row."""
    rows, classes = make_blobs(40, n_features=3, centers=2, random_state=0)
    assert FullMatchClassifier(**QUICK).fit(rows, classes).score(rows, classes) > 0.9


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[np.nan, 1.0]] * 120), "NaN"),
        (np.array([[np.inf, 1.0]] * 120), "infinity"),
        (np.zeros(120), "Expected 2D array, got 1D"),
        (np.zeros((120, 0)), "0 feature"),
        (np.array([["a", "b"]] * 120), "could not convert string"),
        ([[1.0, 2.0]] * 119 + [[1.0]], "rows of one length, got several"),
    ],
)
def test_rows_that_are_no_features(blobs: Any, X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FullMatchClassifier(**QUICK).fit(X, blobs[2])


def test_one_class_only(blobs: Any) -> None:
    labels = np.where(blobs[2] == 0, 0, -1)
    with pytest.raises(ValueError, match="at least 2 classes, got only one class, 0"):
        FullMatchClassifier(**QUICK).fit(blobs[0], labels)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros((2, 5)), ValueError, "X has 5 features, but FullMatchClassifier is expecting 6"),
        (np.full((2, 6), np.nan), ValueError, "NaN"),
        (np.zeros((2, 2, 3)), ValueError, "expected rows of features, as in training, got pict"),
        (["a.png"], ValueError, "expected rows of features, as in training, got paths of pict"),
        (csr_matrix(np.zeros((2, 6))), TypeError, "sparse rows are not supported"),
    ],
)
def test_other_rows_than_in_training(
    fitted: FullMatchClassifier, X: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        fitted.predict(X)


def test_sparse_rows(blobs: Any) -> None:
    with pytest.raises(TypeError, match=r"sparse.*TruncatedSVD.*toarray"):
        FullMatchClassifier(**QUICK).fit(csr_matrix(blobs[0]), blobs[2])


def test_typo_in_the_algorithm(blobs: Any) -> None:
    with pytest.raises(ValueError, match=r"unknown algorithm 'fixmach'.*did you mean 'fixmatch'"):
        FullMatchClassifier("fixmach", **QUICK).fit(blobs[0], blobs[2])
