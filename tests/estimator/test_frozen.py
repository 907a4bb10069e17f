"""The estimator on pictures with a frozen body: the same as `fullmatch train` does on photos."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fullmatch import Classifier
from fullmatch.estimator import FullMatchClassifier
from fullmatch.models.frozen import FrozenNetwork
from tests.frozen_runs import MODEL, tiny_body  # noqa: F401
from tests.small_pictures import write_pictures

TINY: dict[str, Any] = {"model": MODEL, "body": "frozen", "steps": 2}
LABELS = np.array([0, 1, 0, 1, 0, 1, -1, -1, -1, -1, -1, -1])


def pictures(channels: int = 3, side: int = 24) -> np.ndarray:
    """Dark and bright noise by turns."""
    noise = np.random.default_rng(0).integers(0, 100, (12, side, side, channels))
    return (noise + 150 * (np.arange(12) % 2)[:, None, None, None]).astype(np.uint8)


@pytest.mark.usefixtures("tiny_body")
@pytest.mark.parametrize("channels", [1, 3])
def test_arrays(channels: int, tmp_path: Path) -> None:
    X = pictures(channels)
    fitted = FullMatchClassifier(**TINY).fit(X, LABELS)
    assert isinstance(fitted.classifier_.network, FrozenNetwork)
    assert fitted.image_shape_ == (channels, 24, 24)
    assert fitted.predict(X).tolist() == [0, 1] * 6
    assert [each.name for each in fitted.strategies_][:2] == ["labels only", "propagated labels"]
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict_proba(X) == fitted.predict_proba(X)).all()
    fitted.save(tmp_path / "model.safetensors")
    saved = Classifier.load(tmp_path / "model.safetensors")
    images = torch.from_numpy(X.transpose(0, 3, 1, 2).copy())
    with torch.no_grad():
        np.testing.assert_allclose(saved(images).numpy(), fitted.predict_proba(X), atol=1e-5)


@pytest.mark.usefixtures("tiny_body")
@pytest.mark.parametrize("shape", [(1, 1), (300, 3), (3, 300)])
def test_pictures_of_any_size(shape: tuple[int, int]) -> None:
    X = np.random.default_rng(0).integers(0, 256, (12, *shape, 3), dtype=np.uint8)
    assert FullMatchClassifier(**TINY).fit(X, LABELS).predict(X).shape == (12,)


@pytest.mark.usefixtures("tiny_body")
def test_paths(tmp_path: Path) -> None:
    write_pictures(tmp_path / "cat", 6)
    write_pictures(tmp_path / "dog", 6)
    files = sorted(map(str, tmp_path.glob("*/*.png")))
    y = ["cat", "cat", "cat", "", "", "", "dog", "dog", "dog", "", "", ""]
    fitted = FullMatchClassifier(**TINY, image_size=32).fit(files, y)
    assert fitted.image_shape_ == (3, 32, 32)
    assert set(fitted.predict(files)) <= {"cat", "dog"}


def test_packaged_weights() -> None:
    """The real ones, which come with the installation."""
    X = pictures(side=16)
    fitted = FullMatchClassifier(model="pretrained", body="frozen", steps=2).fit(X, LABELS)
    assert fitted.predict(X).tolist() == [0, 1] * 6
    assert fitted.model_.name == "timm:tf_efficientnet_lite0"


def test_no_weights_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fullmatch.estimator.run.preferred_weights", lambda device: None)
    with pytest.raises(ValueError, match="no pretrained weights on this machine; install some"):
        FullMatchClassifier(body="frozen").fit(pictures(), LABELS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "wrn-10-1"}, "'wrn-10-1' has no pretrained weights"),
        ({"model": "resnt18"}, "unknown model 'resnt18'.*did you mean 'resnet18'"),
        ({"model": MODEL, "weights": "gone.pth"}, "gone.pth"),
        ({"model": "pretraind"}, "did you mean 'pretrained'"),
        ({"settings": ("model.bodi=frozen",)}, "unknown setting 'model.bodi'"),
    ],
)
def test_wrong_networks(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FullMatchClassifier(body="frozen", **options).fit(pictures(), LABELS)


def test_pictures_too_small_for_the_network() -> None:
    with pytest.raises(ValueError, match=r"does not take images of 24x24 \(.*another size"):
        FullMatchClassifier(model="alexnet", steps=1).fit(pictures(), LABELS)


@pytest.mark.usefixtures("tiny_body")
def test_one_picture_per_class() -> None:
    """No label can be held out: there is nothing to compare strategies on."""
    y = np.where(np.arange(12) < 2, LABELS, -1)
    fitted = FullMatchClassifier(**TINY).fit(pictures(), y)
    assert fitted.strategies_ == ()
    assert fitted.predict(pictures()).tolist() == [0, 1] * 6
