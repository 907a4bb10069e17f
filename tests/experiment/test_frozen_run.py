"""A run on a frozen body: only a head is trained, and the saved model is the whole network."""

import json
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
import torch

from fullmatch import data
from fullmatch.algorithms import ALGORITHMS
from fullmatch.config import ExperimentConfig
from fullmatch.data import Source
from fullmatch.errors import UserError
from fullmatch.experiment.baseline import compare_with_baseline, prepare_baseline
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.cross_validation import CrossValidation, FoldOptions
from fullmatch.experiment.feature_pass import FeaturePass
from fullmatch.experiment.run import Run
from fullmatch.experiment.start import resume, start
from fullmatch.experiment.strategies import LABELS_ONLY, StrategyChooser, list_strategies
from fullmatch.models.frozen import FrozenNetwork, HeadNetwork
from fullmatch.storage.features import Part
from fullmatch.storage.result import Accuracy, StrategyResult
from fullmatch.storage.run_folder import RunFolder
from tests.frozen_runs import frozen_config, tiny_body
from tests.own_pictures import COLORS, clean_folder
from tests.small_runs import (
    abandon_after,
    finish,
    read_outputs,
    stop_after,
    tensor_bytes,
    write_embeddings,
)

__all__ = ["tiny_body"]
ROTATING = ("remixmatch", "crmatch")
# Two folds, each held out once.
choose_quickly = StrategyChooser(folds=FoldOptions(folds=2, very_few=0), tune=False)
pytestmark = pytest.mark.usefixtures("tiny_body")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    return clean_folder(folder, labels=5, unlabeled=6, test=4, size=72)


@pytest.fixture(scope="module")
def source(photos: Path) -> Source:
    return data.load(str(photos), size=72)


@pytest.fixture(scope="module")
def source_without_test(source: Source) -> Source:
    return replace(source, test=None, test_labels=None)


def begin(config: ExperimentConfig, out: Path, source: Source, **options: object) -> Run:
    return start(config, RunFolder.planned("frozen", out), source, **options)  # type: ignore[arg-type]


def test_a_run_writes_model_features_and_result(
    photos: Path, source: Source, tmp_path: Path
) -> None:
    run = finish(begin(frozen_config(photos), tmp_path / "run", source))
    assert isinstance(run.state.student, HeadNetwork)
    assert run.result.teacher is not None
    assert run.result.teacher.images == 12
    assert "starts from random weights" in run.result.notes
    assert run.result.strategies == ()
    features = run.folder.read_features()
    assert features is not None
    assert run.features is not None
    counts = {part: len(features.where(part)) for part in Part}
    assert counts == {Part.LABELED: 15, Part.UNLABELED: 18, Part.TEST: 12}
    assert features.classes == tuple(COLORS)
    assert features.weights == run.features.model.identity
    assert features.names[0].endswith(".png")
    assert not Path(features.names[0]).is_absolute()
    lengths = torch.from_numpy(features.features).norm(dim=1)
    assert torch.allclose(lengths, torch.ones(45), atol=2e-3)
    rows = torch.nn.functional.normalize(run.features.plain.float(), dim=1)
    assert torch.allclose(torch.from_numpy(features.features[:33]), rows, atol=1e-3)
    labels = {
        name.split("/")[1]: features.labels[at]
        for at, name in enumerate(features.names[:33])
        if name.startswith("labeled/")
    }
    assert labels == {name: code for code, name in enumerate(COLORS)}


def test_training_changes_the_head(photos: Path, source: Source, tmp_path: Path) -> None:
    run = begin(frozen_config(photos), tmp_path / "run", source)
    assert isinstance(run.state.student, HeadNetwork)
    assert not run.state.student.head.weight.any()  # model.head is zero
    finish(run)
    assert run.state.student.head.weight.any()


@pytest.mark.parametrize("algorithm", ["fullmatch", "semco", "simmatch"])
def test_the_saved_model_predicts_as_the_run_did(
    algorithm: str, photos: Path, source: Source, tmp_path: Path
) -> None:
    config = frozen_config(photos, algorithm, *algorithm_settings(algorithm, tmp_path))
    run = finish(begin(config, tmp_path / "run", source))
    loaded = Classifier.load(run.folder.model)
    assert isinstance(loaded.network, FrozenNetwork)
    assert not loaded.training
    assert source.test is not None
    with torch.no_grad():
        again = loaded(source.test.read(torch.arange(12)))
    predictions = run.folder.read_predictions()
    assert predictions is not None
    before = torch.from_numpy(predictions.probabilities)
    assert before.std(dim=0).min() > 1e-3  # they depend on the picture
    # Features are kept in half precision, the loaded model computes in single precision.
    assert torch.allclose(again, before, atol=5e-3)
    assert torch.equal(again.argmax(dim=1), before.argmax(dim=1))


def test_a_model_of_classes_that_imagenet_knows(
    photos: Path, source: Source, tmp_path: Path
) -> None:
    known = replace(source, classes=("known 0", "known 1", "known 2"))
    run = finish(
        begin(frozen_config(photos, "fullmatch", "model.head=propagation"), tmp_path / "run", known)
    )
    assert run.features is not None
    assert len(run.features.embedding.dimensions) == 3
    loaded = Classifier.load(run.folder.model).network
    assert isinstance(loaded, FrozenNetwork)
    assert loaded.body.named is not None
    named = run.features.model.body.named
    assert named is not None
    assert torch.equal(loaded.body.named, named)
    with torch.no_grad():
        images = torch.randn(2, 3, 72, 72)
        embedded = run.features.embedding(run.features.model.body(images))
        torch.testing.assert_close(loaded.feature_map(images)[:, :, 0, 0], embedded)


def test_a_changed_body_does_not_fit_the_saved_model(
    photos: Path, source: Source, tmp_path: Path
) -> None:
    run = finish(begin(frozen_config(photos), tmp_path / "run", source))
    saved = run.folder.model.read_bytes()
    run.folder.model.write_bytes(saved.replace(b"test_resnet", b"test_vit\\\\ "))
    with pytest.raises(UserError) as error:
        Classifier.load(run.folder.model)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("head", ["zero", "logistic", "propagation"])
def test_an_interrupted_run_ends_with_the_same_bits(
    head: str, photos: Path, source: Source, tmp_path: Path
) -> None:
    config = frozen_config(photos, "fullmatch", f"model.head={head}")
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    whole = finish(begin(config, straight, source))
    stop_after(begin(config, broken, source), 1)
    abandon_after(resume(RunFolder(broken), source), 3)
    resumed = resume(RunFolder(broken), source)
    assert resumed.recovery == ["resumed at step 2"]
    finish(resumed)
    assert read_outputs(broken) == read_outputs(straight)
    assert tensor_bytes(resumed.state.state_dict()) == tensor_bytes(whole.state.state_dict())
    features = [(out / "features.safetensors").read_bytes() for out in (straight, broken)]
    assert features[0] == features[1]


def test_a_pass_interrupted_by_the_user_ends_with_the_same_bits(
    photos: Path, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random crops of a picture do not depend on where the pass was interrupted."""
    config = frozen_config(photos, "fullmatch", "model.crops=2")
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    finish(begin(config, straight, source))
    describe, calls = FeaturePass.describe_batch, []

    def interrupt(*arguments: object, **options: object) -> object:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return describe(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FeaturePass, "describe_batch", interrupt)
    with pytest.raises(KeyboardInterrupt):
        begin(config, broken, source)
    torch.rand(3)  # the state of the caller's generator does not matter
    finish(resume(RunFolder(broken), source))
    assert read_outputs(broken) == read_outputs(straight)


def test_the_feature_pass_leaves_the_random_state(
    photos: Path, source: Source, tmp_path: Path
) -> None:
    before = torch.get_rng_state()
    begin(frozen_config(photos), tmp_path / "run", source)
    assert torch.equal(torch.get_rng_state(), before)


def algorithm_settings(name: str, folder: Path) -> tuple[str, ...]:
    if name == "semco":
        return (f"algorithm.embeddings={write_embeddings(folder, classes=3)}",)
    return ()


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in ROTATING])
def test_every_algorithm_trains_a_head(
    name: str, photos: Path, source_without_test: Source, tmp_path: Path
) -> None:
    settings = ("training.steps=2", "model.crops=0", *algorithm_settings(name, tmp_path))
    run = finish(begin(frozen_config(photos, name, *settings), tmp_path / "a", source_without_test))
    assert run.state.step == 2
    assert all(torch.isfinite(tensor).all() for tensor in run.state.student.state_dict().values())
    assert Classifier.load(run.folder.model).classes == tuple(COLORS)


@pytest.mark.parametrize("name", ROTATING)
def test_algorithms_that_rotate_pictures_are_refused(
    name: str, photos: Path, source: Source, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"rotates pictures.*model\.body") as error:
        begin(frozen_config(photos, name), tmp_path / "run", source)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_a_network_without_published_weights_leaves_nothing(
    photos: Path, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the real loader
    config = frozen_config(photos, "fullmatch", "model.name=wrn-10-1")
    with pytest.raises(UserError, match="no pretrained weights") as error:
        begin(config, tmp_path / "run", source)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_the_baseline_uses_the_same_features(
    photos: Path, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finish(begin(frozen_config(photos), tmp_path / "run", source)).folder

    def never(*_: object) -> None:
        raise AssertionError("features were computed again")

    monkeypatch.setattr(FeaturePass, "describe_batch", never)
    baseline = prepare_baseline(folder, source)
    assert baseline is not None
    assert baseline.config.model.head == "logistic"
    assert baseline.config.optimizer.rate == 0
    finish(baseline)
    comparison = compare_with_baseline(folder)
    assert comparison is not None
    assert comparison.images == 12


def planned(photos: Path, *settings: str) -> ExperimentConfig:
    return frozen_config(photos, "fullmatch", "model.head=propagation", "model.crops=0", *settings)


def test_strategies_are_in_the_result(
    photos: Path, source_without_test: Source, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run = finish(begin(planned(photos), out, source_without_test, choose=choose_quickly))
    written = json.loads((out / "result.json").read_text())["strategies"]
    assert [strategy["name"] for strategy in written] == [
        LABELS_ONLY,
        "propagated labels",
        "propagated labels, then training",
    ]
    assert sum(strategy["chosen"] for strategy in written) == 1
    assert all(0 <= strategy["accuracy"] <= 1 for strategy in written)
    assert run.folder.read_result().strategies == run.strategies
    assert not list(out.glob("strategy-*"))
    assert run.folder.estimate.is_dir()


def test_strategies_survive_an_interrupt(
    photos: Path, source_without_test: Source, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run = begin(planned(photos), out, source_without_test, choose=choose_quickly)
    abandon_after(run, 0)
    resumed = finish(resume(RunFolder(out), source_without_test))
    assert resumed.result.strategies == run.strategies != ()


def test_strategies_are_compared_after_an_early_interrupt(
    photos: Path, source_without_test: Source, tmp_path: Path
) -> None:
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    run = finish(begin(planned(photos), straight, source_without_test, choose=choose_quickly))

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin(planned(photos), broken, source_without_test, choose=interrupt)
    resumed = finish(resume(RunFolder(broken), source_without_test, choose=choose_quickly))
    assert resumed.config == run.config
    assert without_times(resumed) == without_times(run) != ()
    assert (broken / "model.safetensors").read_bytes() == run.folder.model.read_bytes()


def without_times(run: Run) -> tuple[StrategyResult, ...]:
    return tuple(replace(strategy, seconds=0.0) for strategy in run.result.strategies)


def with_accuracies(
    monkeypatch: pytest.MonkeyPatch, baseline: float, accuracies: tuple[float, ...]
) -> None:
    """Every strategy gets the next of these accuracies; its folds are those that were trained."""
    left, measure_baseline = list(accuracies), baseline

    def fixed(self: CrossValidation, *, baseline: bool = False) -> Accuracy:
        accuracy = measure_baseline if baseline else left.pop(0)
        return Accuracy(accuracy=accuracy, interval=(0.0, 1.0))

    monkeypatch.setattr(CrossValidation, "accuracy", fixed)


@pytest.mark.parametrize(
    ("baseline", "accuracies", "expected", "reason"),
    [
        (0.9, (0.8, 0.85), 0, "the most accurate"),
        (0.9, (0.9, 0.9), 1, "the simplest"),  # ties: unlabeled pictures, then the simpler one
        (0.5, (0.6, 0.6), 1, "the simplest"),
        (0.5, (0.6, 0.7), 2, "the most accurate"),
        (0.8, (0.7, 0.8), 2, "as accurate as labels only"),
    ],
)
def test_the_best_strategy_is_used(
    baseline: float,
    accuracies: tuple[float, ...],
    expected: int,
    reason: str,
    photos: Path,
    source_without_test: Source,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_accuracies(monkeypatch, baseline, accuracies)
    run = begin(
        planned(photos, "training.steps=1"),
        tmp_path / "run",
        source_without_test,
        choose=choose_quickly,
    )
    chosen = [number for number, strategy in enumerate(run.strategies) if strategy.chosen]
    assert chosen == [expected]
    assert run.strategies[expected].reason.startswith(reason)
    assert [bool(each.reason) for each in run.strategies] == [
        each.chosen for each in run.strategies
    ]
    assert run.strategies[expected].accuracy >= run.strategies[0].accuracy
    heads = ["logistic", "propagation", "propagation"]
    assert run.config.model.head == heads[expected]
    assert (run.config.optimizer.rate == 0) == (expected < 2)


def test_one_label_per_class_uses_propagated_labels(tmp_path: Path) -> None:
    photos = clean_folder(tmp_path / "photos", labels=1, unlabeled=8, size=72)
    run = begin(
        planned(photos), tmp_path / "run", data.load(str(photos), size=72), choose=choose_quickly
    )
    assert run.strategies == ()
    assert run.config.optimizer.rate == 0
    assert run.config.model.head == "propagation"
    assert not list((tmp_path / "run").glob("strategy-*"))
    assert isinstance(finish(run).state.student, HeadNetwork)


def test_a_fitted_head_stays_as_it_is(
    photos: Path, source_without_test: Source, tmp_path: Path
) -> None:
    propagated = list_strategies(planned(photos))[0].config
    run = begin(propagated, tmp_path / "run", source_without_test)
    assert isinstance(run.state.student, HeadNetwork)
    before = tensor_bytes(run.state.student.state_dict())
    assert run.state.student.head.weight.any()
    finish(run)
    assert tensor_bytes(run.state.student.state_dict()) == before
    assert tensor_bytes(run.state.teacher.state_dict()) == before
