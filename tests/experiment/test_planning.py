"""The plan fits the pictures, the machine and the time."""

from pathlib import Path

import pytest
import torch

from fullmatch.config import ExperimentConfig
from fullmatch.data import Source
from fullmatch.errors import UserError
from fullmatch.experiment import planning
from fullmatch.experiment.candidates import weights_file
from fullmatch.experiment.planning import Plan, glimpse, plan, stand_in, step_seconds
from fullmatch.experiment.presets import own_pictures
from tests.own_pictures import clean_folder, picture, save

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(autouse=True)
def no_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))


def source(side: int = 32, labels: int = 30, unlabeled: int = 900, test: int = 0) -> Source:
    classes = {"ok": labels // 2, "dent": labels - labels // 2}
    return stand_in(classes, unlabeled=unlabeled, test=test, side=side, channels=3)


def planned(found: Source, seconds: float | dict[str, float], **rest: object) -> Plan:
    """A plan for a machine on which a step of each network takes so long."""

    def measure(config: ExperimentConfig, source: Source) -> float:
        assert source.images.shape[1] == (config.data.size or found.images.shape[1])
        return seconds[config.model.name] if isinstance(seconds, dict) else seconds

    return plan(found, "own", measure=measure, **{"device": CPU, **rest})  # type: ignore[arg-type]


def test_takes_the_best_network_that_gets_enough_steps() -> None:
    times = {"wrn-37-2": 1.0, "wrn-16-2": 0.1, "wrn-10-1": 0.02}
    assert planned(source(128), times).config.model.name == "wrn-16-2"
    assert planned(source(128), times, minutes=120).config.model.name == "wrn-37-2"
    assert planned(source(128), times, minutes=2).config.model.name == "wrn-10-1"
    assert planned(source(128), 0.001, minutes=5).config.data.size == 96


def test_small_pictures_keep_their_size() -> None:
    found = planned(source(16), 0.01).config
    assert found.data.size is None and found.model.name == "wrn-10-1"


def test_stays_within_the_minutes() -> None:
    for minutes in (2, 10, 30):
        found = planned(source(labels=20 * minutes), 0.05, minutes=minutes)
        assert found.seconds <= 60 * minutes
        assert found.config.training.steps <= planning.MOST


def test_says_when_the_time_is_short() -> None:
    found = planned(source(), 4.0)
    assert found.config.training.steps == planning.LEAST
    assert "give --minutes" in found.notes[-1]


def test_pretrained_only_with_weights(tmp_path: Path) -> None:
    without = planned(source(64), 0.1)
    assert not without.config.model.pretrained and "no pretrained weights" in without.notes[0]
    path = weights_file("resnet18")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    found = planned(source(64), 0.1).config
    assert found.model.pretrained and found.model.name == "resnet18" and found.data.size is None
    assert found.optimizer.rate < without.config.optimizer.rate


def test_given_weights_are_as_good_as_those_that_are_here(tmp_path: Path) -> None:
    file = tmp_path / "own.pth"
    found = planned(source(128), 0.1, model="timm:resnet10t", weights=file).config
    assert found.model.name == "timm:resnet10t" and found.model.weights == str(file)
    assert not found.model.pretrained and found.data.size is None
    assert found.optimizer.rate < planned(source(128), 0.1).config.optimizer.rate
    small = planned(source(128), 0.1, model="wrn-10-1", weights=file).config
    assert small.data.size == 32 and small.model.weights == str(file)
    with pytest.raises(UserError, match="--weights needs --model"):
        planned(source(128), 0.1, weights=file)


def test_a_named_network_is_taken_however_slow() -> None:
    found = planned(source(128), 9.0, model="wrn-37-2")
    assert found.config.model.name == "wrn-37-2" and found.config.data.size == 96
    assert found.config.model.weights is None and "give --minutes" in found.notes[-1]


def test_batches_fit_small_sets() -> None:
    found = planned(source(labels=5, unlabeled=3), 0.1).config.training
    assert found.batch == 5 and found.ratio == 1
    none = planned(source(labels=4, unlabeled=0), 0.1).config.training
    assert none.batch == 4 and none.ratio == 1
    large = planned(source(labels=500), 0.1, device=GPU).config.training
    assert large.batch == 64 and large.ratio == 7


def test_a_loss_is_logged_before_its_state_is_saved() -> None:
    training = planned(source(), 0.01).config.training
    assert training.checkpoint_every % training.log_every == 0


def test_steps_that_are_asked_for_are_not_timed() -> None:
    def never(*_: object) -> float:
        raise AssertionError

    found = plan(source(128), "own", measure=never, steps=7000, device=CPU)
    assert found.config.model.name == "wrn-16-2" and found.config.data.size == 32
    assert found.config.training.steps == 7000
    assert found.config.training.ema == pytest.approx(1 - 1 / 350)
    assert found.notes[-1] == "network wrn-16-2 on pictures of 32x32"
    best = plan(source(128), "own", measure=never, steps=7, device=GPU).config
    assert best.model.name == "wrn-37-2" and best.training.log_every == 1
    tiny = plan(source(16), "own", measure=never, steps=7, device=CPU).config
    assert tiny.model.name == "wrn-10-1"


def test_a_plan_differs_from_the_preset_only_by_what_was_seen() -> None:
    found, usual = planned(source(), 0.05).config, own_pictures("own", "npmatch")
    assert found.optimizer == own_pictures("own", "fullmatch").optimizer
    assert planned(source(), 0.05, algorithm="npmatch").config.optimizer == usual.optimizer
    with pytest.raises(UserError, match=r"training.steps is 0, expected 1 or more"):
        planned(source(), 0.05, steps=0)


def test_baseline_where_there_is_a_test() -> None:
    assert planned(source(test=9), 0.1).config.baseline
    assert not planned(source(), 0.1).config.baseline


def test_arrays_keep_their_size() -> None:
    found = plan(source(128), "own.npz", measure=lambda *_: 9.0, device=CPU).config
    assert found.data.size is None


def test_glimpse_sees_what_loading_would(tmp_path: Path) -> None:
    clean_folder(tmp_path / "own", test=1)
    found = glimpse(tmp_path / "own")
    assert found.classes == ("brick", "grass", "water") and found.images.shape == (3, 32, 32)
    assert len(found.images) == 18 + 36 and found.test is not None and len(found.test) == 3
    assert int((found.labels >= 0).sum()) == 18


def test_glimpse_refuses_what_cannot_be_learned(tmp_path: Path) -> None:
    save(picture("brick", 0), tmp_path / "labeled/brick/0.png")
    with pytest.raises(UserError, match="only the class 'brick'"):
        glimpse(tmp_path)


def test_a_step_is_timed_without_leaving_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = planned(source(16, labels=4), 0.1).config
    assert 0 < step_seconds(config, source(16, labels=4)) < 60
    assert list(tmp_path.iterdir()) == []


def test_the_estimate_is_timed_as_it_is_trained() -> None:
    """Its models take a hundred steps at least, so a short plan is not three times as quick."""
    few = planned(source(labels=20), 0.013, minutes=0.3)
    steps = few.config.training.steps
    assert planning.LEAST < steps < planning.SHORTER * planning.LEAST
    parts = 2 * planning.FOLDS
    assert few.seconds == pytest.approx(0.013 * (1.1 * steps + 1.2 * parts * planning.LEAST))
    assert few.seconds <= 18 < few.seconds + 0.02
    single = planned(source(labels=2), 0.01, minutes=0.3)  # nothing can be held out
    assert single.seconds == pytest.approx(0.01 * 1.1 * single.config.training.steps)


def test_says_how_long_the_least_takes() -> None:
    said = planned(source(labels=20), 0.1, minutes=0.3).notes[-1]
    assert "100 are taken at least, in about 2.2 min; 1500" in said
    said = planned(source(labels=20), 0.01, minutes=0.3).notes[-1]
    assert "at least" not in said and "give --minutes" in said
