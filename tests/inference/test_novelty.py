"""Pictures unlike the training pictures are recognized."""

import shutil
from pathlib import Path

import pytest
import torch

from fullmatch import data
from fullmatch.data import TensorStore
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.feature_pass import read_descriptors
from fullmatch.experiment.start import start
from fullmatch.inference.novelty import (
    NoveltyDetector,
    load_or_fit_detector,
    neighbor_distances,
    predict_with_descriptors,
    predict_with_features,
    store_detector,
)
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.run_folder import RunFolder
from tests.frozen_runs import KNOWN_CLASSES, frozen_config, tiny_body
from tests.own_pictures import clean_folder
from tests.served import copy_run, digits_run, pets_run
from tests.small_runs import finish

__all__ = ["tiny_body"]


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier.load(digits_run() / "model.safetensors")


@pytest.fixture(scope="module")
def detector(classifier: Classifier) -> NoveltyDetector:
    detector = NoveltyDetector.fit(classifier, data.load("digits").images)
    assert detector is not None
    return detector


def copy_without_detector(to: Path) -> RunFolder:
    folder = RunFolder(copy_run(digits_run(), to))
    folder.novelty.unlink(missing_ok=True)
    return folder


def forget_data(folder: RunFolder) -> None:
    """Point a run to data that does not exist."""
    text = folder.config.read_text()
    folder.config.write_text(text.replace('"digits"', '"gone"'))


def novel_fraction(
    classifier: Classifier, detector: NoveltyDetector, images: torch.Tensor
) -> float:
    features = predict_with_features(classifier, images)[1]
    return detector.is_novel(features).float().mean().item()


def test_test_pictures_are_not_novel(classifier: Classifier, detector: NoveltyDetector) -> None:
    test = data.load("digits").test
    assert test is not None
    assert novel_fraction(classifier, detector, test.read(torch.arange(len(test)))) < 0.05


@pytest.mark.parametrize("kind", ["noise", "white", "stripes"])
def test_other_pictures_are_novel(
    classifier: Classifier, detector: NoveltyDetector, kind: str
) -> None:
    images = {
        "noise": torch.randint(0, 256, (50, 1, 8, 8), generator=torch.Generator().manual_seed(0)),
        "white": torch.full((1, 1, 8, 8), 255),
        "stripes": (torch.arange(8) % 2 * 255).expand(1, 1, 8, 8),
    }[kind].byte()
    assert novel_fraction(classifier, detector, images) > 0.8


def test_the_threshold_leaves_out_one_percent_of_training_pictures(
    detector: NoveltyDetector,
) -> None:
    distances = neighbor_distances(detector.features, detector.features, 6)
    novel = (distances > detector.threshold).float().mean().item()
    assert novel == pytest.approx(0.01, abs=0.002)
    # One row computed directly; the nearest neighbor is the point itself.
    row = (detector.features - detector.features[7]).norm(dim=1).sort().values[5]
    torch.testing.assert_close(distances[7], row, rtol=1e-3, atol=1e-4)


def test_features_and_probabilities_are_those_of_the_network(classifier: Classifier) -> None:
    images = data.load("digits").images.read(torch.arange(9))
    probs, features = predict_with_features(classifier, images)
    with torch.no_grad():
        torch.testing.assert_close(probs, classifier(images))
        plain = classifier.network(classifier.augment(images, "plain"))
    torch.testing.assert_close(features, plain.features)
    assert not classifier.network._forward_hooks


def test_too_few_pictures(classifier: Classifier) -> None:
    assert NoveltyDetector.fit(classifier, TensorStore(torch.zeros(49, 1, 8, 8).byte())) is None
    detector, note = load_or_fit_detector(TrainedRun(pets_run()))
    assert detector is None
    assert "needs at least 50 training pictures, and there are 12" in note


def test_fitted_once_and_stored(tmp_path: Path) -> None:
    folder = copy_without_detector(tmp_path / "run")
    first, note = load_or_fit_detector(TrainedRun(folder.path))
    assert first is not None
    assert note == ""
    assert folder.novelty.exists()
    assert folder.novelty.name == "familiar.safetensors"  # as in earlier versions
    forget_data(folder)
    again, note = load_or_fit_detector(TrainedRun(folder.path))  # needs no pictures
    assert again is not None
    assert note == ""
    assert again.threshold == pytest.approx(first.threshold)
    assert (again.features == first.features).all()


def test_features_of_another_model_are_not_used(tmp_path: Path) -> None:
    folder = copy_without_detector(tmp_path / "run")
    load_or_fit_detector(TrainedRun(folder.path))
    other = RunFolder(copy_run(pets_run(), tmp_path / "other"))
    shutil.copy(folder.novelty, other.novelty)
    assert NoveltyDetector.load(other.novelty, other.model) is None
    folder.novelty.write_bytes(b"damaged")
    assert NoveltyDetector.load(folder.novelty, folder.model) is None
    assert load_or_fit_detector(TrainedRun(folder.path))[0] is not None  # fitted again


def test_missing_pictures_are_the_reason(tmp_path: Path) -> None:
    folder = copy_without_detector(tmp_path / "run")
    forget_data(folder)
    detector, note = load_or_fit_detector(TrainedRun(folder.path))
    assert detector is None
    assert f"not flagged: gone, which {folder.path} was trained on, is gone" in note


def test_a_read_only_folder_is_not_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_without_detector(tmp_path / "run")

    def fail(self: NoveltyDetector, path: Path, model: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(NoveltyDetector, "save", fail)
    detector, note = load_or_fit_detector(TrainedRun(folder.path))
    assert detector is not None
    assert "so it is computed again each time" in note


def frozen_run(tmp_path: Path) -> TrainedRun:
    photos = clean_folder(tmp_path / "photos", labels=8, unlabeled=14, test=4, size=72)
    config = frozen_config(photos)
    return TrainedRun(finish(start(config, RunFolder.planned("run", tmp_path / "run"))).folder.path)


@pytest.mark.usefixtures("tiny_body")
def test_a_frozen_body_is_judged_by_its_descriptors(tmp_path: Path) -> None:
    run = frozen_run(tmp_path)
    source = run.source
    store_detector(run, source)
    detector = NoveltyDetector.load(run.folder.novelty, run.folder.model)
    assert detector is not None
    width = detector.features.shape[1]
    assert width > KNOWN_CLASSES
    # The same from the pictures, as where the run has kept no descriptors.
    again = NoveltyDetector.fit(run.classifier, source.images)
    assert again is not None
    torch.testing.assert_close(detector.features, again.features, atol=5e-3, rtol=0)
    assert detector.threshold == pytest.approx(again.threshold, abs=0.01)
    probs, rows = predict_with_descriptors(run.classifier, source.images.read(torch.arange(3)))
    assert rows.shape == (3, width)
    torch.testing.assert_close(
        probs, predict_with_features(run.classifier, source.images.read(torch.arange(3)))[0]
    )


@pytest.mark.usefixtures("tiny_body")
def test_kept_descriptors_are_those_of_the_same_pictures_only(tmp_path: Path) -> None:
    run = frozen_run(tmp_path)
    features = run.folder.read_features()
    assert features is not None
    cache, images = run.folder.feature_cache, run.source.images
    rows = read_descriptors(cache, features.weights, images, 1, 0)
    assert rows is not None
    assert len(rows) == len(images)
    assert read_descriptors(cache, features.weights, images, 0, 0) is None
    assert read_descriptors(cache, "other weights", images, 1, 0) is None
    fewer = TensorStore(images.read(torch.arange(5)))
    assert read_descriptors(cache, features.weights, fewer, 1, 0) is None
    for path in cache.glob("*.json"):
        path.write_text('{"done": 3}')
    assert read_descriptors(cache, features.weights, images, 1, 0) is None


@pytest.mark.usefixtures("tiny_body")
def test_embeddings_of_earlier_versions_are_not_used(tmp_path: Path) -> None:
    run = frozen_run(tmp_path)
    features = run.folder.read_features()
    assert features is not None
    earlier = NoveltyDetector.from_features(torch.from_numpy(features.features))
    earlier.save(run.folder.novelty, run.folder.model)
    detector, note = load_or_fit_detector(run)
    assert detector is not None
    assert note == ""
    assert detector.features.shape[1] != earlier.features.shape[1]


def test_stored_for_a_trained_body(tmp_path: Path) -> None:
    folder = copy_without_detector(tmp_path / "run")
    run = TrainedRun(folder.path)
    before = torch.get_rng_state()
    store_detector(run, run.source)
    assert torch.equal(torch.get_rng_state(), before)
    written = folder.novelty.stat().st_mtime_ns
    store_detector(run, run.source)  # it is there already
    assert folder.novelty.stat().st_mtime_ns == written


@pytest.mark.parametrize(("width", "limit"), [(3, 1.0), (64, float("nan"))])
def test_a_detector_that_cannot_judge_is_fitted_again(
    width: int, limit: float, tmp_path: Path
) -> None:
    folder = copy_without_detector(tmp_path / "run")
    NoveltyDetector(torch.zeros(60, width), limit).save(folder.novelty, folder.model)
    detector, _ = load_or_fit_detector(TrainedRun(folder.path))
    assert detector is not None
    assert detector.threshold > 0
