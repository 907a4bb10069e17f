"""The estimator follows scikit-learn's rules, takes all kinds of pictures, and leaves no trace."""

import pickle
import random
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from fullmatch.algorithms.fixmatch import FixMatch
from fullmatch.estimator import FullMatchClassifier
from fullmatch.experiment.run import Run
from fullmatch.models import build_network
from tests.estimator.checks import run_checks
from tests.served import odd_files
from tests.small_pictures import write_pictures

TINY: dict[str, Any] = {
    "model": "wrn-10-1",
    "steps": 2,
    "batch": 4,
    "settings": ("training.ratio=1",),
}
DIGITS = TINY | {"image_shape": (8, 8), "pixel_range": (0, 16), "flip": False}

EXPECTED_TO_FAIL = {
    "check_classifiers_classes": "it names a class -1, which here means unlabeled",
    "check_classifiers_train": "it expects accuracy on rows of 2 numbers; two steps learn nothing",
}


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pixels, digits, and digits of which two in three are hidden."""
    pixels, labels = load_digits(n_class=3, return_X_y=True)
    pixels, labels = pixels[:60], labels[:60]
    few = np.where(np.arange(60) % 3 == 0, labels, -1)
    return pixels, labels, few


def test_checks_of_scikit_learn() -> None:
    status = run_checks(
        FullMatchClassifier("fixmatch", **TINY, image_shape=(1, -1)), EXPECTED_TO_FAIL
    )
    assert not status["failed"]
    assert set(status["xfail"]) == set(EXPECTED_TO_FAIL)  # none of them would pass
    assert len(status["passed"]) > 40


def test_same_seed_same_model_and_other_seed_another(digits: Any) -> None:
    pixels, _, few = digits
    fits = [FullMatchClassifier(**DIGITS, random_state=s).fit(pixels, few) for s in (0, 0, 1)]
    first, second, third = (fitted.predict_proba(pixels) for fitted in fits)
    assert (first == second).all()
    assert (first != third).any()
    assert first.shape == (60, 3)
    np.testing.assert_allclose(first.sum(axis=1), 1, atol=1e-5)
    assert FullMatchClassifier(**DIGITS, random_state=np.random.RandomState(0)).fit(pixels, few)


def test_leaves_generators_and_folders_as_they_were(
    digits: Any,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pixels, _, few = digits
    # PyTorch makes a folder for its compiler when that is first imported.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("compiler")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = torch.get_rng_state(), str(np.random.get_state()), random.getstate()
    threads = torch.get_num_threads()
    more = ("training.ratio=1", f"training.threads={threads + 1}")
    FullMatchClassifier(**DIGITS | {"settings": more}).fit(pixels, few).predict(pixels)
    assert torch.get_num_threads() == threads
    assert (torch.get_rng_state() == before[0]).all()
    assert (str(np.random.get_state()), random.getstate()) == before[1:]
    assert not list(tmp_path.iterdir())


def test_threads_fit_one_after_another(digits: Any) -> None:
    """A process has one generator: two that train at once would draw each other's numbers."""
    pixels, _, few = digits

    def fitted(seed: int) -> np.ndarray:
        model = FullMatchClassifier(**DIGITS, random_state=seed)
        return model.fit(pixels, few).predict_proba(pixels)

    before = torch.get_rng_state()
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(fitted, (0, 1, 0)))
    assert (torch.get_rng_state() == before).all()
    for seed, probabilities in zip((0, 1, 0), together, strict=True):
        np.testing.assert_array_equal(probabilities, fitted(seed))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_fits_in_any_mode_of_autograd(digits: Any, mode: Any) -> None:
    pixels, _, few = digits
    expected = FullMatchClassifier(**DIGITS).fit(pixels, few).predict_proba(pixels)
    with mode():
        probabilities = FullMatchClassifier(**DIGITS).fit(pixels, few).predict_proba(pixels)
    np.testing.assert_array_equal(probabilities, expected)


def test_predictions_do_not_depend_on_the_default_dtype(
    digits: Any, request: pytest.FixtureRequest
) -> None:
    pixels, _, few = digits
    fitted = FullMatchClassifier(**DIGITS).fit(pixels, few)
    expected = fitted.predict_proba(pixels)
    request.addfinalizer(lambda: torch.set_default_dtype(torch.float32))
    torch.set_default_dtype(torch.float64)
    np.testing.assert_array_equal(fitted.predict_proba(pixels), expected)


def test_a_failed_fit_leaves_nothing_fitted(digits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels, _, few = digits
    fitted = FullMatchClassifier(**DIGITS).fit(pixels, few)

    def interrupted(run: Run) -> Iterator[Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "records", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(pixels, np.where(few < 0, "", np.array(["horse", "zebra", "ass"])[few]))
    with pytest.raises(NotFittedError):
        fitted.predict(pixels)


@pytest.mark.parametrize("flip", [True, False, np.bool_(True)])
def test_flip_is_passed_on(files: list[str], flip: bool) -> None:
    y, pixels = [0, 1, 0, 1, -1, -1, -1, -1], np.arange(8 * 64).reshape(8, 8, 8) % 256
    model = FullMatchClassifier(**TINY, flip=flip, image_size=16)
    for X in (pixels, files):
        assert model.fit(X, y).classifier_.augment.appearance.flip is bool(flip)


def test_changes_to_the_data_are_reported(digits: Any) -> None:
    pixels, _, few = digits
    names = np.array(["null", "eins", "zwei"])
    y = np.where(few < 0, "", names[few])
    X, y = np.concatenate([pixels, pixels[:1]]), np.append(y, "zwei")  # the first is a null
    with pytest.warns(UserWarning, match="2 labeled pictures are exact duplicates with"):
        FullMatchClassifier(**DIGITS).fit(X, y)
    one = y == "null"
    y[one], y[0] = "", "null"
    with pytest.raises(ValueError, match="leaves no label of the class 'null'"):
        FullMatchClassifier(**DIGITS).fit(X, y)


@pytest.mark.parametrize("layout", ["NHW", "NHWC", "NCHW", "rows", "bytes", "unit", "frame"])
def test_layouts_and_ranges_give_the_same_answers(digits: Any, layout: str) -> None:
    pixels, _, few = digits
    full = np.rint(pixels * (255 / 16)).astype(np.uint8)
    options = DIGITS | {"pixel_range": None}
    reference = FullMatchClassifier(**options).fit(full, few).predict_proba(full)
    pictures = full.reshape(-1, 8, 8)
    X = {
        "NHW": pictures,
        "NHWC": pictures[..., None],
        "NCHW": pictures[:, None].astype(np.int32),
        "rows": full.tolist(),
        "bytes": full.astype(np.float32),
        "unit": full / 255,
        "frame": pd.DataFrame(full, columns=[f"pixel {n}" for n in range(64)]),
    }[layout]
    np.testing.assert_array_equal(
        FullMatchClassifier(**options).fit(X, few).predict_proba(X), reference
    )


def test_pixel_range_of_training_is_used_in_prediction(digits: Any) -> None:
    pixels, _, few = digits
    fitted = FullMatchClassifier(**DIGITS | {"pixel_range": None}).fit(pixels * 15, few)
    assert fitted.pixel_range_ == (0, 255)
    dark = pixels[:5] / 16  # must not be read as 0..1
    assert (fitted.predict_proba(dark) == fitted.predict_proba(np.rint(dark))).all()


@pytest.mark.parametrize("kind", ["strings", "objects", "floats", "none missing", "bool"])
def test_labels_of_every_kind(digits: Any, kind: str) -> None:
    pixels, labels, few = digits
    names = np.array(["null", "eins", "zwei"])
    y: Any = {
        "strings": np.where(few < 0, "", names[few]),
        "objects": np.array([None if c < 0 else names[c] for c in few], object),
        "floats": np.where(few < 0, np.nan, few),
        "none missing": labels,
        "bool": labels == 0,
    }[kind]
    fitted = FullMatchClassifier(**DIGITS).fit(pixels, y)
    expected = {"floats": [0, 1, 2], "none missing": [0, 1, 2], "bool": [False, True]}
    assert fitted.classes_.tolist() == expected.get(kind, ["eins", "null", "zwei"])
    predicted = fitted.predict(pixels)
    assert predicted.dtype == fitted.classes_.dtype
    assert set(predicted) <= set(fitted.classes_)
    assert 0 <= fitted.score(pixels, y) <= 1


def test_score_uses_known_labels_only(digits: Any) -> None:
    pixels, labels, few = digits
    fitted = FullMatchClassifier(**DIGITS).fit(pixels, few)
    known = few >= 0
    assert fitted.score(pixels, few) == fitted.score(pixels[known], labels[known])
    assert fitted.score(pixels, few, np.arange(60)) == pytest.approx(
        np.average(fitted.predict(pixels)[known] == labels[known], weights=np.arange(60)[known])
    )
    with pytest.raises(ValueError, match=r"expected 60 weights, one per sample, got shape \(3,\)"):
        fitted.score(pixels, few, np.ones(3))
    with pytest.raises(ValueError, match="expected at least one known label, got none"):
        fitted.score(pixels, np.full(60, -1))


def test_clone_pipeline_search_and_pickle(digits: Any, tmp_path: Path) -> None:
    pixels, _, few = digits
    model = FullMatchClassifier(**DIGITS)
    assert clone(model).get_params() == model.get_params()
    steps = GridSearchCV(model, {"steps": np.array([1, 2])}, cv=2, error_score="raise")
    assert steps.fit(pixels, few).best_params_["steps"] in (1, 2)
    pipeline = make_pipeline(FunctionTransformer(lambda x: x), model).fit(pixels, few)
    assert pipeline.predict(pixels).shape == (60,)
    search = GridSearchCV(
        model, {"algorithm": ["fixmatch", "supervised"]}, cv=StratifiedKFold(2), error_score="raise"
    ).fit(pixels, few)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    fitted = search.best_estimator_
    joblib.dump(fitted, tmp_path / "model.joblib")
    for again in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model.joblib")):
        assert (again.predict_proba(pixels) == fitted.predict_proba(pixels)).all()


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    write_pictures(tmp_path / "cat", 4)
    write_pictures(tmp_path / "doggy", 4)
    return sorted(map(str, tmp_path.glob("*/*.png")))


def test_paths(files: list[str], tmp_path: Path) -> None:
    y = np.array(["cat", "cat", "", "", "dog", "dog", "", ""])
    fitted = FullMatchClassifier(**TINY, image_size=16).fit(files, y)
    assert fitted.image_shape_ == (3, 16, 16)
    assert fitted.predict([Path(file) for file in files]).shape == (8,)
    np.testing.assert_array_equal(fitted.predict(pd.Series(files)), fitted.predict(files))
    with pytest.raises(ValueError, match="expected paths of pictures, as in training, got none"):
        fitted.predict([])
    again = clone(fitted).fit(np.arange(8 * 768).reshape(8, 16, 16, 3) % 251, y).fit(files, y)
    assert fitted.score(files, y) >= 0
    with pytest.raises(ValueError, match="cannot read the picture gone"):
        fitted.predict(["gone.png"])
    for each in (fitted, again):
        with pytest.raises(ValueError, match="paths of pictures, as in training, got an array"):
            each.predict(np.zeros((2, 16, 16, 3)))
    odd_files(tmp_path / "odd")
    bad = str(tmp_path / "odd" / "empty.jpg")
    with pytest.warns(UserWarning, match="1 unreadable unlabeled picture left out"):
        FullMatchClassifier(**TINY, image_size=16).fit([*files, bad], [*y, ""])
    with pytest.raises(ValueError, match="1 labeled picture cannot be read"):
        FullMatchClassifier(**TINY, image_size=16).fit([*files, bad], [*y, "cat"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.full(60, -1)}, "expected some labels, got only unlabeled"),
        ({"y": np.zeros(60)}, "at least 2 classes, got only one class"),
        ({"y": np.zeros(3)}, "expected 60 labels"),
        ({"y": None}, "requires y to be passed"),
        ({"image_shape": None}, r"model: got 'wrn-10-1' for rows of features; .* image_shape"),
        ({"image_shape": (7, 7)}, "does not hold 64 pixels"),
        ({"image_size": "8"}, "image_size: expected an integer of 1 or more, got '8'"),
        ({"image_size": 0}, "image_size: expected an integer of 1 or more, got 0"),
        ({"flip": "no"}, "flip: expected True or False, got 'no'"),
        ({"algorithm": FixMatch()}, "algorithm: expected a name that .* shows, got FixMatch"),
        ({"pixel_range": ("a", "b")}, r"pixel_range: expected \(low, high\), got \('a', 'b'\)"),
        ({"pixel_range": (0, 10)}, "expected pixels from 0 to 10, got 0 to 16"),
        ({"algorithm": "fulmatch"}, "unknown algorithm 'fulmatch'.*did you mean 'fullmatch'"),
        ({"model": "wrn"}, "unknown model 'wrn'"),
        ({"model": "pretraned"}, "unknown model 'pretraned'; did you mean 'pretrained'"),
        ({"body": "frosen"}, "body: expected 'trained', 'frozen' or None, got 'frosen'; did you"),
        ({"steps": 0}, "training.steps is 0, expected 1 or more"),
        ({"settings": ("training.stepz=3",)}, "unknown setting 'training.stepz'"),
        ({"random_state": -1}, "seed is -1"),
        ({"X": np.full((60, 64), np.nan)}, "NaN"),
        ({"X": np.full((60, 8, 8), np.nan)}, "got nan to nan"),
        ({"X": np.full((60, 8, 8), "a")}, "expected pictures of numbers"),
        ({"X": ["a.png", np.zeros((8, 8))]}, "expected paths of pictures or arrays, got both"),
        ({"X": [np.zeros((8, 8)), np.zeros((9, 9))]}, "pictures of one size, .* got several"),
    ],
)
def test_mistakes_are_value_errors(digits: Any, change: dict[str, Any], message: str) -> None:
    pixels, _, few = digits
    options = DIGITS | {k: v for k, v in change.items() if k not in ("X", "y")}
    with pytest.raises(ValueError, match=message):
        FullMatchClassifier(**options).fit(change.get("X", pixels), change.get("y", few))


def test_weights_from_a_file(digits: Any, tmp_path: Path) -> None:
    pixels, _, few = digits
    torch.save(build_network("wrn-10-1", 9, (1, 8, 8)).state_dict(), tmp_path / "a.pth")
    still = DIGITS | {"settings": ("training.ratio=1", "optimizer.rate=0")}
    fitted = FullMatchClassifier(**still, weights=tmp_path / "a.pth").fit(pixels, few)
    stem = torch.load(tmp_path / "a.pth", weights_only=True)["stem.weight"]
    assert torch.equal(fitted.classifier_.network.state_dict()["stem.weight"], stem)
    with pytest.raises(ValueError, match="without the model"):
        FullMatchClassifier(**still | {"model": None}, weights="a.pth").fit(pixels, few)
    with pytest.raises(ValueError, match="not a file of weights"):
        FullMatchClassifier(**still, weights=tmp_path / "b.pth").fit(pixels, few)


def test_pictures_of_another_shape(digits: Any) -> None:
    pixels, _, few = digits
    shapeless = DIGITS | {"image_shape": None}
    fitted = FullMatchClassifier(**shapeless).fit(pixels.reshape(-1, 8, 8), few)
    with pytest.raises(ValueError, match=r"expected pictures of \(1, 8, 8\) as in training"):
        fitted.predict(np.zeros((2, 9, 9)))
    with pytest.raises(ValueError, match=r"rows of 64 pixels; give image_shape, such as \(8, 8\)"):
        fitted.predict(np.zeros((2, 64)))


def test_one_setting_needs_no_tuple() -> None:
    x, y = np.zeros((4, 8, 8), np.uint8), [0, 1, 0, 1]
    with pytest.raises(ValueError, match="unknown setting 'optimzer'"):
        FullMatchClassifier(settings="optimzer.rate=1").fit(x, y)


def test_a_single_class_is_named() -> None:
    with pytest.raises(ValueError, match=r"got only one class, 7$"):
        FullMatchClassifier().fit(np.zeros((4, 8, 8), np.uint8), np.full(4, 7))
