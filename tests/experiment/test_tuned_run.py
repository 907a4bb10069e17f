"""A whole pretrained network, trained from a fitted head: run, resume, save, strategies."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch

from fullmatch import data
from fullmatch.config import ExperimentConfig
from fullmatch.data import Source
from fullmatch.errors import UserError
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.cross_validation import FoldOptions
from fullmatch.experiment.inputs import RunInputs
from fullmatch.experiment.plan_types import Strategy
from fullmatch.experiment.presets import labels_only
from fullmatch.experiment.pretrained_plan import tuned_config
from fullmatch.experiment.run import Run
from fullmatch.experiment.start import resume, start
from fullmatch.experiment.strategies import Comparison, StrategyChooser, TrainingCost
from fullmatch.models.frozen import FrozenNetwork, TunedNetwork
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.stopping import TimeLimit
from tests.frozen_runs import frozen_config, tiny_body
from tests.own_pictures import clean_folder
from tests.small_runs import finish, read_outputs, stop_after

__all__ = ["tiny_body"]
pytestmark = pytest.mark.usefixtures("tiny_body")
FOLDS = FoldOptions(folds=2, very_few=0)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clean_folder(tmp_path_factory.mktemp("photos"), labels=5, unlabeled=6, test=4, size=72)


@pytest.fixture(scope="module")
def source(photos: Path) -> Source:
    return data.load(str(photos), size=72)


def config(photos: Path, steps: int = 4) -> ExperimentConfig:
    frozen = frozen_config(photos, "fullmatch", "model.head=propagation", "model.crops=0")
    tuned = tuned_config(frozen, steps, torch.device("cpu"))
    return replace(
        tuned, training=replace(tuned.training, batch=6, ratio=1, log_every=1, checkpoint_every=2)
    )


def begin(config: ExperimentConfig, out: Path, source: Source) -> Run:
    return start(config, RunFolder.planned("tuned", out), source)


def test_it_starts_as_the_frozen_network_with_its_head(
    photos: Path, source: Source, tmp_path: Path
) -> None:
    tuned = begin(config(photos), tmp_path / "tuned", source)
    frozen = begin(replace_body(config(photos), "frozen"), tmp_path / "frozen", source)
    assert isinstance(tuned.state.student, TunedNetwork)
    before = [run.predict("teacher", run.test_store) for run in (tuned, frozen)]
    torch.testing.assert_close(*before, rtol=0.0, atol=0.01)  # features are kept in 16 bits


def replace_body(config: ExperimentConfig, body: Literal["trained", "frozen"]) -> ExperimentConfig:
    return replace(config, model=replace(config.model, body=body))


def test_every_layer_changes_and_statistics_stay(
    photos: Path, source: Source, tmp_path: Path
) -> None:
    run = begin(config(photos), tmp_path / "run", source)
    before = {name: tensor.clone() for name, tensor in run.state.student.state_dict().items()}
    finish(run)
    after = run.state.student.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    parameters = {name for name, _ in run.state.student.named_parameters()}
    assert changed <= parameters
    first = next(name for name, _ in run.state.student.named_parameters())
    assert {"head.weight", first, "body.classifier.weight"} <= changed
    assert any("running_mean" in name for name in before)


def test_resumes_to_the_same_end(photos: Path, source: Source, tmp_path: Path) -> None:
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    finish(begin(config(photos), straight, source))
    stop_after(begin(config(photos), broken, source), 3)
    finish(resume(RunFolder(broken), source))
    assert read_outputs(broken) == read_outputs(straight)


def test_the_saved_model_predicts_the_same(photos: Path, source: Source, tmp_path: Path) -> None:
    run = finish(begin(config(photos), tmp_path / "run", source))
    loaded = Classifier.load(run.folder.model)
    assert type(loaded.network) is FrozenNetwork
    assert source.test is not None
    images = source.test.read(torch.arange(4))
    with torch.no_grad():
        probabilities = loaded(images)
    predictions = run.folder.read_predictions()
    assert predictions is not None
    assert probabilities.numpy() == pytest.approx(predictions.probabilities[:4], abs=1e-5)
    features = run.folder.read_features()
    assert features is not None
    assert features.probabilities is not None
    assert len(features.features) == len(source.images) + len(source.test)
    tested = features.probabilities[-len(source.test) :]
    assert tested == pytest.approx(predictions.probabilities, abs=1e-3)  # saved in 16 bits


def test_its_baseline_is_logistic_regression(photos: Path) -> None:
    baseline = labels_only(config(photos))
    assert (baseline.model.body, baseline.model.head) == ("frozen", "logistic")
    frozen = frozen_config(photos, "fixmatch", "model.head=propagation", "model.crops=0")
    assert labels_only(frozen) == baseline  # whose folds are shared


def chooser(seconds: float, **options: object) -> tuple[StrategyChooser, list[str]]:
    sentences: list[str] = []
    limit = TimeLimit(seconds)
    return StrategyChooser(limit, folds=FOLDS, report=sentences.append, **options), sentences  # type: ignore[arg-type]


def compare(choose: StrategyChooser, photos: Path, source: Source, out: Path) -> Run:
    source = replace(source, test=None, test_labels=None)
    frozen = frozen_config(photos, "fullmatch", "model.head=propagation", "model.crops=0")
    return start(frozen, RunFolder.planned("run", out), source, choose=choose)


def test_tuning_is_compared_where_there_is_time(
    photos: Path, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StrategyChooser, "affordable_steps", lambda *_: 3)
    choose, sentences = chooser(3600)
    run = compare(choose, photos, source, tmp_path / "run")
    assert [each.name for each in run.strategies][-1] == "tuned network"
    assert "trying tuned network (Ctrl-C ends here" in sentences[0]
    result = finish(run).result
    assert result.strategies == run.strategies


def test_tuning_takes_as_many_steps_as_fit(
    photos: Path, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cost(step: float) -> Callable[..., TrainingCost]:
        return lambda *_: TrainingCost(start=10.0, step=step)

    measure = "fullmatch.experiment.strategies.measure_cost"
    monkeypatch.setattr(measure, cost(step=1.0))
    frozen = begin(
        frozen_config(photos, "fullmatch", "model.head=propagation"), tmp_path / "run", source
    )
    inputs = inputs_of(frozen)
    # Two folds and the final model share 70 % of the time.
    assert 200 < (chooser(1000)[0].affordable_steps(frozen.config, inputs) or 0) <= 223
    assert chooser(36000)[0].affordable_steps(frozen.config, inputs) == 400
    assert chooser(60)[0].affordable_steps(frozen.config, inputs) is None
    monkeypatch.setattr(measure, cost(step=20.0))
    choose, sentences = chooser(1801)
    assert choose.affordable_steps(frozen.config, inputs) is None
    assert sentences == [
        "training the whole network would take about 144 min more: use a higher --minutes, or a GPU"
    ]


def inputs_of(run: Run) -> RunInputs:
    return RunInputs(run.source, run.split, run.dataset, run.features)


def test_an_interrupt_keeps_the_best_so_far(
    photos: Path, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Comparison.add

    def interrupt_slow(
        self: Comparison, strategy: Strategy, folds: FoldOptions, seconds: float = 0
    ) -> bool:
        if strategy.name == "from scratch":
            raise KeyboardInterrupt
        return add(self, strategy, folds)

    monkeypatch.setattr(Comparison, "add", interrupt_slow)
    scratch = Strategy("from scratch", config(photos))
    choose, sentences = chooser(3600, alternatives=(scratch,), tune=False)
    run = compare(choose, photos, source, tmp_path / "run")
    assert len(run.strategies) == 3
    assert sentences[-1].startswith("stopped: ")
    assert finish(run).folder.finished


def test_what_does_not_fit_into_the_time_is_left_out(
    photos: Path, source: Source, tmp_path: Path
) -> None:
    scratch = Strategy("from scratch", config(photos), seconds=3600)
    choose, sentences = chooser(3600, alternatives=(scratch,), tune=False)
    run = compare(choose, photos, source, tmp_path / "run")
    assert len(run.strategies) == 3
    assert sentences[-1] == "from scratch is left out: it does not fit into the time"
    assert finish(run).folder.finished
    assert not list(run.folder.path.glob("strategy-*"))


def test_from_scratch_can_win(
    photos: Path, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = frozen_config(photos, "fixmatch", "model.name=wrn-10-1", "model.body=trained")
    choose, _ = chooser(3600, alternatives=(Strategy("from scratch", scratch),), tune=False)
    monkeypatch.setattr(Comparison, "best", property(lambda self: len(self.results) - 1))
    run = compare(choose, photos, source, tmp_path / "run")
    assert run.config.model.name == "wrn-10-1"
    assert run.config.model.body == "trained"
    finish(run)
    features = run.folder.read_features()
    assert features is not None  # of the pretrained network, for the map
    assert RunFolder(tmp_path / "run").estimate.is_dir()


def test_a_head_needs_a_pretrained_body(photos: Path) -> None:
    with pytest.raises(UserError, match=r"needs model.body = frozen or tuned"):
        replace_body(config(photos), "trained")
