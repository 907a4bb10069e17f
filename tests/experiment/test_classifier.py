"""A trained model in one file: it predicts the same when loaded, and runs no code."""

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from fullmatch.augment.views import Augmenter
from fullmatch.errors import UserError
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.run import Run
from fullmatch.inference.prediction import Predictor
from fullmatch.inference.trained_run import TrainedRun
from tests.small_runs import begin, config, digits, finish


@pytest.fixture(scope="module", params=["fullmatch", "npmatch"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One that classifies with its network, and one with the algorithm's own head."""
    return finish(begin(config(request.param), tmp_path_factory.mktemp("run") / "run"))


def test_predicts_what_the_run_predicted(run: Run) -> None:
    classifier = Classifier.load(run.folder.model)
    assert classifier.classes == digits().classes
    assert classifier.image == (1, 8, 8)
    saved = load_file(run.folder.predictions)
    test = digits().test
    assert test is not None
    with torch.no_grad():
        probabilities = classifier(test.read(torch.arange(len(test))))
    torch.testing.assert_close(probabilities, saved["probabilities"], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(probabilities.sum(dim=1), torch.ones(50))
    assert not classifier.training


def test_the_file_holds_only_what_it_needs(run: Run) -> None:
    tensors = load_file(run.folder.model)
    assert Classifier.load(str(run.folder.model)).classes == digits().classes  # a path as text
    heads = [name for name in tensors if not name.startswith("network.")]
    assert bool(heads) is (run.config.algorithm.about.paper == "NP-Match")


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"not a model",
        b"\xff" * 64,
        pickle.dumps(type("Bomb", (), {"__reduce__": lambda self: (os.abort, ())})()),
    ],
    ids=["missing", "empty", "text", "huge header", "pickle"],
)
def test_files_that_are_not_models(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match="missing, damaged, or not a fullmatch model; train one"):
        Classifier.load(path)


def test_foreign_tensors(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(3)}, path)
    with pytest.raises(UserError, match="not a fullmatch model"):
        Classifier.load(path)
    about = {
        "model": "wrn-10-1",
        "image": [1, 8, 8],
        "classes": ["a", "b"],
        "appearance": {"mean": [0.5], "std": [0.5]},
    }
    save_file(
        {"network.other": torch.zeros(40_000)}, path, metadata={"fullmatch": json.dumps(about)}
    )
    with pytest.raises(UserError, match="does not fit the model 'wrn-10-1'"):
        Classifier.load(path)


TASK = {
    "num_classes": 2,
    "num_labeled": 4,
    "num_unlabeled": 4,
    "class_prior": [0.5, 0.5],
    "image": [1, 8, 8],
    "features": 8,
    "feature_map": [8, 2, 2],
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"appearance": None}, "appearance is not a table"),
        ({"appearance": {"mean": [0.5], "std": [0.5], "gamma": 2}}, "unknown setting 'gamma'"),
        ({"classes": ["a", "b"]}, "size mismatch"),
        ({"image": [1]}, "image has 1 entries"),
        ({"algorithm": {"name": "laermatch"}, "task": TASK}, "unknown algorithm 'laermatch'"),
        ({"algorithm": {"name": "fixmatch"}, "task": {}}, "task.num_classes is missing"),
        ({"algorithm": {"name": "fixmatch"}, "task": None}, "algorithm and task belong together"),
        ({"model": 3}, "model is not a text"),
        ({"model": "wrn-10-40000"}, "wrn-10-40000 has more weights than the file"),
        ({"model": "wrn-600004-1"}, "wrn-600004-1 has more weights than the file"),
        ({"image": [1, 99_999, 99_999]}, r"pictures of \(1, 99999, 99999\)"),
    ],
)
def test_another_version(run: Run, change: dict[str, object], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with safe_open(run.folder.model, framework="pt") as file:
        about = json.loads(file.metadata()["fullmatch"])
    save_file(load_file(run.folder.model), path, {"fullmatch": json.dumps(about | change)})
    with pytest.raises(UserError, match=f"{path} was not written by this version.*{reason}"):
        Classifier.load(path)


def test_files_have_the_usual_permissions(run: Run) -> None:
    config = run.folder.config.stat().st_mode
    written = list(run.folder.path.rglob("*.safetensors"))
    assert len(written) >= 3  # model, predictions and state
    assert {path.stat().st_mode for path in written} == {config}


def test_a_file_without_permission_is_not_called_damaged(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read anything
    with pytest.raises(UserError, match=r"no permission to read .*; ask its owner"):
        Classifier.load(run.folder.model)


def test_pictures_are_stretched_for_prediction_as_they_were_for_the_test(
    run: Run, tmp_path: Path
) -> None:
    """ImageNet is trained on crops of 256 pixels, and tested on whole pictures of 224."""
    classifier = run.classifier("teacher")
    assert classifier.picture == classifier.image == (1, 8, 8)
    appearance = replace(run.dataset.appearance, crop=6, stretch=True)
    stretched = Classifier(
        classifier.network,
        classifier.algorithm,
        Augmenter(appearance),
        classes=classifier.classes,
        image=classifier.image,
    )
    path = tmp_path / "model.safetensors"
    stretched.save(path, model="wrn-10-1", spec=run.table()["algorithm"], task=run.task)
    loaded = Classifier.load(path)
    assert (loaded.image, loaded.picture) == ((1, 8, 8), (1, 6, 6))
    assert loaded.augment.appearance == appearance
    wide = Image.new("L", (60, 10), 0)
    wide.paste(255, (0, 0, 10, 10))
    wide.save(tmp_path / "wide.png")
    predictor = Predictor(TrainedRun(run.folder.path))
    predictor.classifier = loaded
    pixels = predictor.decode(str(tmp_path / "wide.png"))
    assert pixels is not None
    assert pixels.shape == (1, 6, 6)
    assert pixels[0, 3, 0] > 200
