"""The plan fits the pictures, the machine and the time."""

from pathlib import Path
from typing import Any

import pytest
import torch

from fullmatch.config import ExperimentConfig
from fullmatch.data import Source
from fullmatch.errors import UserError
from fullmatch.experiment.candidates import weights_file
from fullmatch.experiment.cross_validation import FOLDS, LEAST_STEPS, SHORTER
from fullmatch.experiment.plan_types import PlanOptions, TrainingPlan
from fullmatch.experiment.planning import make_plan
from fullmatch.experiment.presets import own_pictures
from fullmatch.experiment.scratch_plan import MAX_STEPS, measure_step_seconds
from fullmatch.experiment.source_scan import blank_source, scan_source
from fullmatch.models.pretrained import Origin, WeightsFile
from fullmatch.training.stopping import TimeLimit
from tests.own_pictures import clean_folder, picture, save

CPU, GPU = torch.device("cpu"), torch.device("cuda")
PIXEL = 3e-7  # seconds through a frozen body


@pytest.fixture(autouse=True)
def no_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither caches nor packages have weights."""
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr("fullmatch.models.pretrained.list_weights", list)


WEIGHTS = WeightsFile("timm:tf_efficientnet_lite0", Path("a.pth"), Origin.PACKAGE, "some_package")


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with weights is installed."""
    monkeypatch.setattr("fullmatch.models.pretrained.list_weights", lambda: [WEIGHTS])


def source(side: int = 32, labels: int = 30, unlabeled: int = 900, test: int = 0) -> Source:
    classes = {"ok": labels // 2, "dent": labels - labels // 2}
    return blank_source(classes, unlabeled=unlabeled, test=test, side=side, channels=3)


def plan(
    source: Source,
    seconds: float | dict[str, float],
    device: torch.device = CPU,
    **options: Any,
) -> TrainingPlan:
    """A plan for a machine on which a step of each network takes so long."""

    def measure(config: ExperimentConfig, resized: Source) -> float:
        assert resized.images.shape[1] == (config.data.size or source.images.shape[1])
        return seconds[config.model.name] if isinstance(seconds, dict) else seconds

    return make_plan(
        source,
        "own",
        PlanOptions(**options),
        device=device,
        measure=measure,
        measure_pass=lambda *_: PIXEL,
    )


def never(*_: object) -> float:
    raise AssertionError


def test_the_best_network_that_gets_enough_steps_is_used() -> None:
    times = {"wrn-37-2": 1.0, "wrn-16-2": 0.1, "wrn-10-1": 0.02}
    assert plan(source(128), times).config.model.name == "wrn-16-2"
    assert plan(source(128), times, minutes=120).config.model.name == "wrn-37-2"
    assert plan(source(128), times, minutes=2).config.model.name == "wrn-10-1"
    assert plan(source(128), 0.001, minutes=5).config.data.size == 96


def test_small_pictures_keep_their_size() -> None:
    config = plan(source(16), 0.01).config
    assert config.data.size is None
    assert config.model.name == "wrn-10-1"


def test_stays_within_the_minutes() -> None:
    for minutes in (2, 10, 30):
        planned = plan(source(labels=20 * minutes), 0.05, minutes=minutes)
        assert planned.seconds <= 60 * minutes
        assert planned.config.training.steps <= MAX_STEPS


def test_a_note_when_the_time_is_short() -> None:
    planned = plan(source(), 4.0)
    assert planned.config.training.steps == LEAST_STEPS
    assert "use --minutes" in planned.notes[-1]


def test_pretrained_only_with_weights(tmp_path: Path) -> None:
    without = plan(source(64), 0.1)
    assert not without.config.model.pretrained
    assert "no pretrained weights" in without.notes[0]
    path = weights_file("resnet18")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    config = plan(source(64), 0.1).config
    assert config.model.pretrained
    assert config.model.name == "resnet18"
    assert config.data.size is None
    assert config.optimizer.rate < without.config.optimizer.rate


def test_weights_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.pth"
    config = plan(source(128), 0.1, model="timm:resnet10t", weights=file).config
    assert config.model.name == "timm:resnet10t"
    assert config.model.weights == str(file)
    assert not config.model.pretrained
    assert config.data.size is None
    assert config.optimizer.rate < plan(source(128), 0.1).config.optimizer.rate
    small = plan(source(128), 0.1, model="wrn-10-1", weights=file).config
    assert small.data.size == 32
    assert small.model.weights == str(file)
    with pytest.raises(UserError, match="--weights needs --model"):
        plan(source(128), 0.1, weights=file)


def test_a_requested_network_is_used_however_slow() -> None:
    planned = plan(source(128), 9.0, model="wrn-37-2")
    assert planned.config.model.name == "wrn-37-2"
    assert planned.config.data.size == 96
    assert planned.config.model.weights is None
    assert "use --minutes" in planned.notes[-1]


def test_batches_fit_small_sets() -> None:
    small = plan(source(labels=5, unlabeled=3), 0.1).config.training
    assert small.batch == 5
    assert small.ratio == 1
    none = plan(source(labels=4, unlabeled=0), 0.1).config.training
    assert none.batch == 4
    assert none.ratio == 1
    large = plan(source(labels=500), 0.1, device=GPU).config.training
    assert large.batch == 64
    assert large.ratio == 7


def test_a_loss_is_logged_before_its_state_is_saved() -> None:
    training = plan(source(), 0.01).config.training
    assert training.checkpoint_every % training.log_every == 0


def test_requested_steps_are_not_timed() -> None:
    def plan_steps(source: Source, steps: int, device: torch.device) -> TrainingPlan:
        options = PlanOptions(steps=steps)
        return make_plan(source, "own", options, measure=never, device=device)

    planned = plan_steps(source(128), 7000, CPU)
    assert planned.config.model.name == "wrn-16-2"
    assert planned.config.data.size == 32
    assert planned.config.training.steps == 7000
    assert planned.config.training.ema == pytest.approx(1 - 1 / 350)
    assert planned.notes[-1] == "network wrn-16-2 on pictures of 32x32"
    best = plan_steps(source(128), 7, GPU).config
    assert best.model.name == "wrn-37-2"
    assert best.training.log_every == 1
    tiny = plan_steps(source(16), 7, CPU).config
    assert tiny.model.name == "wrn-10-1"


def test_a_plan_has_the_optimizer_of_the_preset() -> None:
    preset = own_pictures("own", "npmatch")
    assert plan(source(), 0.05).config.optimizer == own_pictures("own", "fullmatch").optimizer
    assert plan(source(), 0.05, algorithm="npmatch").config.optimizer == preset.optimizer
    with pytest.raises(UserError, match=r"training.steps is 0, expected 1 or more"):
        plan(source(), 0.05, steps=0)


def test_a_test_set_comes_with_a_baseline() -> None:
    assert plan(source(test=9), 0.1).config.baseline
    assert not plan(source(), 0.1).config.baseline


def test_arrays_keep_their_size() -> None:
    made = make_plan(source(128), "own.npz", measure=lambda *_: 9.0, device=CPU)
    assert made.config.data.size is None


def test_scanning_finds_what_loading_would(tmp_path: Path) -> None:
    clean_folder(tmp_path / "own", test=1)
    scanned = scan_source(tmp_path / "own")
    assert scanned.classes == ("brick", "grass", "water")
    assert scanned.images.shape == (3, 32, 32)
    assert len(scanned.images) == 18 + 36
    assert scanned.test is not None
    assert len(scanned.test) == 3
    assert int((scanned.labels >= 0).sum()) == 18


def test_scanning_refuses_a_single_class(tmp_path: Path) -> None:
    save(picture("brick", 0), tmp_path / "labeled/brick/0.png")
    with pytest.raises(UserError, match="only the class 'brick'"):
        scan_source(tmp_path)


def test_a_step_is_timed_without_leaving_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = plan(source(16, labels=4), 0.1).config
    assert 0 < measure_step_seconds(config, source(16, labels=4)) < 60
    assert list(tmp_path.iterdir()) == []


def test_the_time_includes_the_estimate() -> None:
    """Its models train for at least a hundred steps, so a short plan is not three times faster."""
    few = plan(source(labels=20), 0.013, minutes=0.3)
    steps = few.config.training.steps
    assert LEAST_STEPS < steps < SHORTER * LEAST_STEPS
    parts = 2 * FOLDS
    assert few.seconds == pytest.approx(0.013 * (1.1 * steps + 1.2 * parts * LEAST_STEPS))
    assert few.seconds <= 18 < few.seconds + 0.02
    single = plan(source(labels=2), 0.01, minutes=0.3)  # nothing can be held out
    assert single.seconds == pytest.approx(0.01 * 1.1 * single.config.training.steps)


def test_a_note_says_how_long_the_least_takes() -> None:
    note = plan(source(labels=20), 0.1, minutes=0.3).notes[-1]
    assert "min here, but at least 100 are done, in about 2.2 min; 1500 would do better" in note
    note = plan(source(labels=20), 0.01, minutes=0.3).notes[-1]
    assert "at least" not in note
    assert "use --minutes" in note


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf")])
def test_minutes_that_are_no_time(minutes: float) -> None:
    with pytest.raises(UserError, match=r"--minutes is .*, expected a number above 0"):
        plan(source(), 0.1, minutes=minutes)


def gray_source(side: int) -> Source:
    return blank_source({"a": 5, "b": 5}, unlabeled=50, test=0, side=side, channels=1)


@pytest.mark.usefixtures("weights")
@pytest.mark.parametrize(("side", "size"), [(64, 64), (96, 96), (160, 160), (161, 224), (256, 224)])
def test_photos_start_from_pretrained_weights(side: int, size: int) -> None:
    made = make_plan(source(side), "own", device=CPU, measure=never, measure_pass=lambda *_: PIXEL)
    model = made.config.model
    assert (model.name, model.body, model.head) == (WEIGHTS.model, "frozen", "propagation")
    assert made.config.data.size == size
    assert made.compare_strategies
    assert made.config.optimizer.rate > 0
    assert 0 < made.seconds < 600
    assert any("knows photos" in note for note in made.notes)


@pytest.mark.usefixtures("weights")
@pytest.mark.parametrize("device", [CPU, GPU], ids=str)
def test_wishes_start_from_scratch(device: torch.device, tmp_path: Path) -> None:
    def frozen(pictures: Source, **options: Any) -> bool:
        made = plan(pictures, 0.01, device, **options)
        assert made.compare_strategies == (made.config.model.body == "frozen")
        return made.compare_strategies

    assert frozen(source(96))
    assert frozen(gray_source(96))
    assert not frozen(source(96), model="wrn-10-1")
    assert not frozen(source(96), steps=50)
    assert not frozen(source(96), pretrained=False)


@pytest.mark.usefixtures("weights")
@pytest.mark.parametrize("side", [96, 300])
def test_photos_in_arrays_keep_their_size(side: int) -> None:
    made = make_plan(source(side), "own.npz", device=CPU, measure_pass=lambda *_: PIXEL)
    assert made.config.model.body == "frozen"
    assert made.config.data.size is None


def test_photos_without_weights_start_from_scratch() -> None:
    assert plan(source(96), 0.01).config.model.body == "trained"


@pytest.mark.usefixtures("weights")
@pytest.mark.parametrize("labels", [2, 7, 500])
def test_batches_of_a_head_fit_the_labels(labels: int) -> None:
    training = plan(source(96, labels, unlabeled=3), 0.01).config.training
    assert training.batch == min(labels, 40)
    assert 1 <= training.batch * (training.ratio or 0) <= max(labels + 3, training.batch)


@pytest.mark.usefixtures("weights")
def test_a_frozen_plan_says_when_the_time_is_short() -> None:
    short = plan(source(96, unlabeled=900_000), 0.01)
    assert short.seconds > 600
    assert "fewer unlabeled pictures take less" in short.notes[-1]
    long = plan(source(96, unlabeled=900_000), 0.01, minutes=1000)
    assert len(long.notes) == len(short.notes) - 1


@pytest.mark.usefixtures("weights")
def test_a_frozen_plan_keeps_the_algorithm() -> None:
    for name in ("fullmatch", "supervised", "softmatch"):
        config = plan(source(96), 0.01, algorithm=name).config
        preset = own_pictures("own", name)
        assert type(config.algorithm) is type(preset.algorithm)
        assert config.optimizer.momentum == preset.optimizer.momentum


@pytest.mark.usefixtures("weights")
@pytest.mark.parametrize("pictures", [source(63), source(32), gray_source(28)])
def test_small_pictures_are_also_tried_from_scratch(pictures: Source) -> None:
    made = plan(pictures, 0.01)
    assert made.config.model.body == "frozen"
    assert made.compare_strategies
    (scratch,) = made.alternatives
    assert scratch.name == "from scratch"
    assert scratch.config.model.body == "trained"
    assert plan(source(64), 0.01).alternatives == ()


@pytest.mark.usefixtures("weights")
def test_as_many_sizes_as_the_time_allows() -> None:
    def sizes(minutes: float, side: int = 300) -> tuple[int, ...]:
        return plan(source(side, unlabeled=2970), 0.01, minutes=minutes).config.model.sizes

    # 3,000 pictures at 0.3 microseconds per pixel.
    assert sizes(30) == (160, 224, 288)
    assert sizes(3) == (160, 224)
    assert sizes(1) == (160,)
    assert sizes(0.1) == (160,)
    assert sizes(2, side=32) == (96, 160)
    assert sizes(0.9, side=32) == (160,)  # better than the smaller size alone
    assert sizes(0.5, side=32) == (96,)
    assert sizes(0.1, side=32) == (96,)
    assert "more than the 0.1 min" in plan(source(300), 0.01, minutes=0.1).notes[-1]


def test_a_training_ends_when_it_takes_a_fifth_longer_than_planned() -> None:
    made = plan(source(), 0.05)
    (rule,) = made.stopping_rules()
    assert isinstance(rule, TimeLimit)
    assert rule.seconds == pytest.approx(1.2 * 1.1 * 0.05 * made.config.training.steps)
    assert plan(source(), 0.05, steps=9).stopping_rules() == []
