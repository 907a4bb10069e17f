"""Pictures unlike the training pictures are told from pictures like them."""

import shutil
from pathlib import Path

import pytest
import torch

from fullmatch import data
from fullmatch.data import TensorStore
from fullmatch.experiment.classifier import Classifier
from fullmatch.inference.novelty import NAME, Familiarity, distance, familiarity_of, seen
from fullmatch.inference.trained_run import TrainedRun
from tests.served import copied, digits_run, pets_run


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier.load(digits_run() / "model.safetensors")


@pytest.fixture(scope="module")
def familiarity(classifier: Classifier) -> Familiarity:
    found = Familiarity.measured(classifier, data.load("digits").images)
    assert found is not None
    return found


def share(classifier: Classifier, familiarity: Familiarity, images: torch.Tensor) -> float:
    return familiarity.unlike(seen(classifier, images)[1]).float().mean().item()


def test_test_pictures_are_familiar(classifier: Classifier, familiarity: Familiarity) -> None:
    test = data.load("digits").test
    assert test is not None
    assert share(classifier, familiarity, test.read(torch.arange(len(test)))) < 0.05


@pytest.mark.parametrize("kind", ["noise", "white", "stripes"])
def test_strange_pictures_are_not(
    classifier: Classifier, familiarity: Familiarity, kind: str
) -> None:
    images = {
        "noise": torch.randint(0, 256, (50, 1, 8, 8), generator=torch.Generator().manual_seed(0)),
        "white": torch.full((1, 1, 8, 8), 255),
        "stripes": (torch.arange(8) % 2 * 255).expand(1, 1, 8, 8),
    }[kind].byte()
    assert share(classifier, familiarity, images) > 0.8


def test_one_training_picture_in_a_hundred_is_out_of_the_usual(
    classifier: Classifier, familiarity: Familiarity
) -> None:
    own = distance(familiarity.features, familiarity.features, 6)
    assert (own > familiarity.limit).float().mean().item() == pytest.approx(0.01, abs=0.002)
    # The distance against a loop: the nearest is the point itself.
    row = (familiarity.features - familiarity.features[7]).norm(dim=1).sort().values[5]
    torch.testing.assert_close(own[7], row, rtol=1e-3, atol=1e-4)


def test_features_and_probabilities_are_the_networks_own(classifier: Classifier) -> None:
    images = data.load("digits").images.read(torch.arange(9))
    probs, features = seen(classifier, images)
    with torch.no_grad():
        torch.testing.assert_close(probs, classifier(images))
        plain = classifier.network(classifier.augment(images, "plain"))
    torch.testing.assert_close(features, plain.features)
    assert not classifier.network._forward_hooks


def test_few_pictures_are_no_ground_to_judge(classifier: Classifier) -> None:
    assert Familiarity.measured(classifier, TensorStore(torch.zeros(49, 1, 8, 8).byte())) is None
    found, note = familiarity_of(TrainedRun(pets_run()))
    assert found is None and "takes 50 training pictures, and there were 12" in note


def test_measured_once_and_kept_beside_the_model(tmp_path: Path) -> None:
    run = copied(digits_run(), tmp_path / "run")
    (run / NAME).unlink(missing_ok=True)
    first, note = familiarity_of(TrainedRun(run))
    assert first is not None and note == "" and (run / NAME).exists()
    (run / "config.toml").write_text(
        (run / "config.toml").read_text().replace('"digits"', '"gone"')
    )
    again, note = familiarity_of(TrainedRun(run))  # needs the pictures no more
    assert again is not None and note == ""
    assert again.limit == pytest.approx(first.limit)
    assert (again.features == first.features).all()


def test_another_models_features_are_not_used(tmp_path: Path) -> None:
    run = copied(digits_run(), tmp_path / "run")
    familiarity_of(TrainedRun(run))
    other = copied(pets_run(), tmp_path / "other")
    shutil.copy(run / NAME, other / NAME)
    assert Familiarity.load(other / NAME, other / "model.safetensors") is None
    (run / NAME).write_bytes(b"damaged")
    assert Familiarity.load(run / NAME, run / "model.safetensors") is None
    assert familiarity_of(TrainedRun(run))[0] is not None  # measured anew


def test_without_the_pictures_it_says_why(tmp_path: Path) -> None:
    run = copied(digits_run(), tmp_path / "run")
    (run / NAME).unlink(missing_ok=True)
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace('"digits"', '"gone"'))
    found, note = familiarity_of(TrainedRun(run))
    assert found is None and f"not flagged: gone, which {run} was trained on, is gone" in note


def test_a_folder_that_cannot_be_written_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(digits_run(), tmp_path / "run")
    (run / NAME).unlink(missing_ok=True)

    def refused(self: Familiarity, path: Path, model: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Familiarity, "save", refused)
    found, note = familiarity_of(TrainedRun(run))
    assert found is not None and "cannot be written, so it is measured again each time" in note
