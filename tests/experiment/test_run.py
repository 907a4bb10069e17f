"""A run in its folder: what it writes, what it reads, and what it never touches."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from fullmatch.config import experiment_config, read_toml
from fullmatch.data import ImageStore, Source, TensorStore
from fullmatch.errors import NonFiniteLoss, UserError
from fullmatch.evaluation.scores import compute_scores
from fullmatch.experiment.inputs import choose_split
from fullmatch.experiment.run import Run
from fullmatch.experiment.start import start
from fullmatch.storage.run_folder import RunFolder
from tests.small_runs import STEPS, begin, config, digits, finish, read_outputs, tensor_bytes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return finish(begin(config(), tmp_path_factory.mktemp("run") / "run"))


def test_what_is_written(run: Run) -> None:
    assert {path.name for path in run.folder.path.iterdir()} == {
        ".lock",
        "checkpoints",
        "config.toml",
        "metrics.jsonl",
        "model.safetensors",
        "predictions.safetensors",
        "manifest.json",
        "result.json",
        "split.json",
    }
    assert not any(path.suffix in (".pt", ".pth", ".pkl") for path in run.folder.path.rglob("*"))


def test_records_of_a_run(run: Run) -> None:
    records = run.folder.read_records()
    assert [record.step for record in records] == [3, 4, 6, 8]
    assert [record.step for record in records if record.evaluation] == [4, 8]
    assert {"loss", "supervised", "selected", "k", "rate"} <= set(records[0].metrics)
    assert 0 < records[0].seconds < records[-1].seconds
    assert set(records[1].evaluation) == {"student", "teacher"}


def test_result_of_a_run(run: Run) -> None:
    result = run.folder.read_result()
    assert result == run.result
    assert (result.data, result.labels, result.unlabeled) == ("digits", 40, 200)
    assert result.labels_by_class == (4,) * 10
    assert result.steps == STEPS
    assert result.seed == 0
    assert result.classes == tuple(str(digit) for digit in range(10))
    assert result.algorithm["name"] == "fixmatch"
    assert result.algorithm["full"]
    for scores in (result.student, result.teacher):
        assert scores is not None
        assert scores.images == 50
        assert len(scores.per_class) == 10
        assert scores.interval[0] <= scores.top1 <= scores.interval[1]
        assert scores.median_last_20 is not None
        assert scores.best_chosen_on_test is not None
    assert set(result.versions) == {"fullmatch", "torch", "python"}
    assert run.split is not None
    assert result.split_hash == run.split.hash


def test_same_seed_same_run_other_seed_other_run(run: Run, tmp_path: Path) -> None:
    torch.manual_seed(99)  # whatever the caller did before
    finish(begin(config(), tmp_path / "same"))
    assert read_outputs(tmp_path / "same") == read_outputs(run.folder.path)
    other = finish(begin(config(seed=1), tmp_path / "other"))
    assert tensor_bytes(other.state.state_dict()) != tensor_bytes(run.state.state_dict())
    assert (tmp_path / "other" / "split.json").read_text() != run.folder.split.read_text()


def test_split_seed_apart_from_the_seed(run: Run) -> None:
    split = choose_split(config("fullmatch", "data.split_seed=0", seed=5), digits())
    assert split == run.split
    assert choose_split(config(seed=5), digits()) != run.split


def test_split_file_is_used(run: Run, tmp_path: Path) -> None:
    other = begin(config("fullmatch", f"data.split={run.folder.split}", seed=5), tmp_path / "run")
    assert other.split == run.split
    assert (tmp_path / "run" / "split.json").read_text() == run.folder.split.read_text()


def test_all_labels(tmp_path: Path) -> None:
    """However uneven the classes are."""
    made = begin(config("supervised", "data.labels=none"), tmp_path / "run")
    assert len(made.dataset.labeled) == 200


def test_callers_random_numbers_are_untouched(tmp_path: Path) -> None:
    def numbers() -> tuple[float, ...]:
        return torch.rand(()).item(), float(np.random.rand()), random.random()

    def seed() -> None:
        torch.manual_seed(7)
        np.random.seed(7)
        random.seed(7)

    seed()
    expected = [numbers() for _ in range(20)]
    seed()
    made = begin(config("npmatch"), tmp_path / "run")  # its predictions are drawn
    drawn = [numbers()]
    drawn += [numbers() for _ in made.records()]
    drawn += [numbers() for _ in range(20 - len(drawn))]
    assert drawn == expected


def test_test_images_are_predicted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predicted: list[str] = []
    predict = Run.predict

    def counted(self: Run, who: str, images: ImageStore) -> Tensor:
        predicted.append(who)
        return predict(self, who, images)

    monkeypatch.setattr(Run, "predict", counted)
    source = replace(digits(), benchmark=False)  # which are predicted after training only
    folder = RunFolder.planned("once", tmp_path / "run")
    made = finish(start(config("npmatch", labels=40), folder, source))  # its predictions are drawn
    assert sorted(predicted) == ["student", "teacher"]
    saved = load_file(made.folder.predictions)
    assert made.result.teacher is not None
    ece = compute_scores(saved["probabilities"], saved["labels"]).ece
    assert ece == made.result.teacher.ece


class Diverging(torch.nn.Module):
    """Wraps a step's loss; after some calls it is NaN."""

    def __init__(self, loss: torch.nn.Module, good: int) -> None:
        super().__init__()
        self.loss, self.good = loss, good

    def forward(self, *args: object) -> object:
        output = self.loss(*args)
        self.good -= 1
        return output if self.good >= 0 else output._replace(loss=output.loss * float("nan"))


def test_a_nan_loss_stops_the_run(tmp_path: Path) -> None:
    made = begin(config(), tmp_path / "run")
    made.step.loss = Diverging(made.loss, 4)
    message = "the loss became NaN at step 6: lower the learning rate, such as --set"
    with pytest.raises(NonFiniteLoss, match=message) as error:
        finish(made)
    assert "--set optimizer.rate=0.01," in str(error.value)
    assert "\n" not in str(error.value)
    saved = [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()]
    assert sorted(saved) == ["step-000000000", "step-000000005"]
    assert not made.folder.result.exists()


class CountingStore(TensorStore):
    """Remembers at which step of which run it was read."""

    reads: list[int]
    run: Run | None = None

    def read(self, index: Tensor) -> Tensor:
        self.reads.append(self.run.state.step if self.run else -1)
        return super().read(index)

    def to(self, device: torch.device | str) -> "CountingStore":
        return self


@pytest.fixture
def counted() -> tuple[Source, CountingStore]:
    source = digits()
    assert isinstance(source.test, TensorStore)
    store = CountingStore(source.test.images)
    store.reads = []
    return replace(source, test=store), store


def test_own_test_pictures_are_read_after_training_only(
    counted: tuple[Source, CountingStore], tmp_path: Path
) -> None:
    source, store = counted
    own = replace(source, benchmark=False)
    made = start(config(), RunFolder.planned("x", tmp_path / "run"), own)
    store.run = made
    finish(made)
    assert set(store.reads) == {-1, STEPS}  # before training only to find duplicates
    teacher = made.folder.read_result().teacher
    assert teacher is not None
    assert teacher.best_chosen_on_test is None
    assert not any(record.evaluation for record in made.folder.read_records())


def test_benchmark_is_evaluated_during_training(
    counted: tuple[Source, CountingStore], tmp_path: Path
) -> None:
    source, store = counted
    made = start(config(), RunFolder.planned("x", tmp_path / "run"), source)
    store.run = made
    finish(made)
    assert set(store.reads) == {4, 8}


def test_without_test_pictures(tmp_path: Path) -> None:
    own = replace(digits(), benchmark=False, test=None, test_labels=None)
    made = finish(start(config(), RunFolder.planned("x", tmp_path / "run"), own))
    result = made.folder.read_result()
    assert result.teacher is None
    assert result.lacks_estimate
    assert made.folder.model.exists()
    assert not made.folder.predictions.exists()


def test_health_of_a_run(run: Run, tmp_path: Path) -> None:
    assert run.result.health == ()  # too few records to find anything
    images = torch.cat([digits().images.read(torch.arange(40)), torch.zeros(160, 1, 8, 8).byte()])
    labels = torch.where(torch.arange(200) < 40, digits().labels, -1)
    noisy = replace(digits(), images=TensorStore(images), labels=labels, benchmark=False)
    settings = ("data.labels=none", "training.log_every=1", "algorithm.threshold=1")
    for algorithm, expected in [
        ("fixmatch", ["outliers", "nothing selected"]),
        ("iomatch", ["nothing selected"]),  # it is meant for outliers
        ("supervised", []),  # it uses no unlabeled picture
    ]:
        chosen = config(algorithm, *settings[: 3 if expected else 2])
        made = finish(start(chosen, RunFolder.planned("x", tmp_path / algorithm), noisy))
        health = made.folder.read_result().health
        assert [finding.kind for finding in health] == expected
        assert all(finding.message and finding.advice for finding in health)
        advice = [finding.advice for finding in health if finding.kind == "outliers"]
        assert all("--algorithm iomatch" in text for text in advice)


def test_small_sets_shrink_the_batch_and_the_run_says_so(tmp_path: Path) -> None:
    made = begin(config("fullmatch", "training.batch=64"), tmp_path / "run")
    assert "40 labeled images are fewer than a batch of 64: the batch shrinks to 40" in made.notes
    assert finish(made).folder.read_result().notes == tuple(made.notes)


@pytest.mark.parametrize(
    "setting",
    [
        "model.name=resnet81",
        "training.execution=graph",
        "training.precision=bf16",
        "data.labels=9",
        "data.split=nowhere.json",
    ],
)
def test_wrong_settings_leave_nothing_behind(setting: str, tmp_path: Path) -> None:
    with pytest.raises(UserError):
        begin(config("fullmatch", setting), tmp_path / "some" / "run")
    assert list(tmp_path.iterdir()) == []


def test_config_file_is_the_config(run: Run) -> None:
    from fullmatch.algorithms import algorithm

    assert experiment_config(read_toml(run.folder.config), algorithm) == run.config


def test_checkpoints_come_as_often_as_asked(tmp_path: Path) -> None:
    """Also where no log record and no evaluation falls on their step."""
    made = begin(config("fullmatch", "training.log_every=100"), tmp_path / "run")
    steps = [record.step for record in made.records()]
    assert steps == [4, 5, 8]
    saved = sorted(path.name for path in made.folder.checkpoints.iterdir())
    assert saved == ["step-000000005", "step-000000008"]


@pytest.mark.parametrize("option", ["training.weak_gradient=false", "optimizer.clip=0.1"])
def test_options_change_the_run(option: str, run: Run, tmp_path: Path) -> None:
    other = finish(begin(config("fullmatch", option), tmp_path / "run"))
    assert tensor_bytes(other.state.state_dict()) != tensor_bytes(run.state.state_dict())


def test_compiled_step_is_the_eager_one(run: Run, tmp_path: Path) -> None:
    """Traced without generating code, where the two may differ."""
    made = begin(config(), tmp_path / "run")
    compiled = torch.compile(made.loss, fullgraph=True, dynamic=False, backend="aot_eager")
    made.step.loss = compiled
    finish(made)
    for name, tensor in made.state.state_dict().items():
        torch.testing.assert_close(
            tensor, run.state.state_dict()[name], rtol=1e-3, atol=1e-4, msg=name
        )
