"""Who works on which run, what is the same sweep, and what is refused before anything is made."""

from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w

from fullmatch.algorithms import name_of
from fullmatch.config import config_table
from fullmatch.errors import UserError
from fullmatch.experiment.settings import resolve
from fullmatch.sweeps.folder import SweepFolder, check_request
from fullmatch.sweeps.score import RunScore, ScoreKind
from tests.sweeps.small_sweeps import TINY, make_sweep


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "base.toml"
    base = resolve(labels=40, steps=6, assignments=TINY)
    path.write_text(tomli_w.dumps(config_table(base, name_of)), encoding="utf-8")
    return path


def test_every_run_is_claimed_once(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", "optimizer.rate=0.01,0.1")
    other = SweepFolder(tmp_path / "sweep").open()
    with sweep.claim() as one, other.claim() as two, sweep.claim() as three, other.claim() as four:
        names = [run.name for run in (one, two, three, four) if run is not None]
        assert names == ["000-seed0", "000-seed1", "001-seed0", "001-seed1"]
        with other.claim() as none:
            assert none is None
        assert one is not None
        sweep.write_score(one, RunScore(score=0.5))
    with other.claim() as left:  # the first is done, and the others are free again
        assert left == two
    assert sweep.read_score(one) == RunScore(score=0.5)


def test_settings_of_a_run(tmp_path: Path) -> None:
    sweep = make_sweep(
        tmp_path / "sweep", "algorithm.name=flexmatch,fixmatch", "algorithm.threshold=0.7,0.9"
    )
    runs = [run for point in sweep.points() for run in sweep.runs_of(point)]
    configs = [sweep.config_of(run) for run in runs]
    assert [name_of(each.algorithm) for each in configs] == ["flexmatch"] * 4 + ["fixmatch"] * 4
    assert [each.algorithm.threshold for each in configs] == [0.7, 0.7, 0.9, 0.9] * 2
    assert [each.seed for each in configs] == [0, 1] * 4
    assert {(each.training.batch, each.data.labels) for each in configs} == {(6, 40)}


def test_the_same_request_joins_and_another_is_refused(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", "optimizer.rate=0.01,0.1")
    folder, request = sweep.folder, sweep.request
    folder.join(request)
    for other in (
        replace(request, seeds=(0,)),
        replace(request, settings=("optimizer.rate=0.01,0.2",)),
        replace(request, base={"data": "svhn"}),
        replace(request, score=ScoreKind.HELD_OUT),
        replace(request, trials=3),
    ):
        with pytest.raises(UserError, match=r"another sweep \(optimizer.rate=0.01,0.1, seeds 0, 1"):
            folder.join(other)


def test_a_search_may_grow(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", "optimizer.rate=0.01..0.1", trials=3)
    sweep.folder.join(replace(sweep.request, trials=5))
    assert sweep.folder.read_request().trials == 5
    sweep.folder.join(replace(sweep.request, trials=2))
    assert sweep.folder.read_request().trials == 5


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="is not a sweep; choose another --out"):
        make_sweep(tmp_path, "optimizer.rate=0.01,0.1")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(UserError, match="is not a sweep; start one with"):
        SweepFolder(tmp_path).open()


def test_a_process_killed_while_making_the_folder_leaves_nothing_in_the_way(
    tmp_path: Path,
) -> None:
    place = tmp_path / "sweep"
    place.mkdir()
    for name in (".lock", "config.toml", ".sweep.json.123"):
        (place / name).write_text("half")
    assert len(make_sweep(place, "optimizer.rate=0.01,0.1").points()) == 2


@pytest.mark.parametrize(
    ("settings", "trials", "message"),
    [
        (["optimizer.rat=1,2"], None, "unknown setting 'optimizer.rat'; did you mean 'rate'"),
        (["training.batch=8,large"], None, "training.batch is 'large', expected an integer"),
        (["optimizer.rate=0.1,-1"], None, "optimizer.rate is -1.0, expected 0 or more"),
        (["optimizer.rate=-1..1"], 3, "optimizer.rate is -1.0, expected 0 or more"),
        (["training.batch=0.5..8"], 3, "training.batch is 0.5, expected an integer"),
        (["optimizer.rate=0.1..1"], None, "add --trials N"),
        (["optimizer.rate=0.1..1"], 0, "--trials is 0, expected 1 or more"),
        (["model.name=1..2"], 3, "model.name is not a number, and has no range"),
        (["algorithm.name=fixmatch,fulmatch"], None, "did you mean 'fullmatch'"),
        (["model.head=zero,logistic"], None, "needs model.body"),
        ([f"training.steps={','.join(map(str, range(1, 6000)))}"], None, "more than 10,000 runs"),
    ],
)
def test_wrong_values_are_refused(
    settings: list[str], trials: int | None, message: str, config: Path, tmp_path: Path
) -> None:
    sweep = make_sweep(tmp_path / "sweep", "optimizer.rate=0.01,0.1")
    with pytest.raises(UserError, match=message):
        check_request(config, replace(sweep.request, settings=tuple(settings), trials=trials))


def test_damaged_files_are_named(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", "optimizer.rate=0.01,0.1")
    run = sweep.runs_of(sweep.points()[0])[0]
    sweep.write_score(run, RunScore(score=0.5))
    sweep.score_file(run).write_text('{"score": "high"}')
    with pytest.raises(UserError, match=r"000-seed0.json is damaged .*; delete it, then run"):
        sweep.read_score(run)
    sweep.folder.definition.write_text("{}")
    with pytest.raises(UserError, match=r"sweep.json is damaged"):
        sweep.folder.open()
