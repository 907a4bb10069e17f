"""A search whose study is a file: it goes on after a crash as if nothing had happened."""

import sys
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.sweeps.score import RunScore
from fullmatch.sweeps.search import cut_torn_line, shorten
from fullmatch.sweeps.table import build_table
from tests.sweeps.small_sweeps import make_sweep

SETTINGS = ("optimizer.rate=0.001..0.1", "training.batch=4..8", "optimizer.schedule=cosine,linear")


def search(path: Path, trials: int, stop: int = 1000) -> list[list[str]]:
    """Trials of a search for a rate of 0.02; runs after `stop` are left undone."""
    sweep = make_sweep(path, *SETTINGS, seeds=(0,), trials=trials)
    for _ in range(stop):
        with sweep.claim() as run:
            if run is None:
                break
            rate = float(dict(run.point.values)["optimizer.rate"])
            sweep.write_score(run, RunScore(score=1 - abs(rate - 0.02)))
    return [point.assignments for point in sweep.points()]


def test_values_are_in_their_ranges(tmp_path: Path) -> None:
    trials = search(tmp_path / "sweep", 14)
    values = [dict(text.split("=") for text in trial) for trial in trials]
    assert len(values) == 14
    assert all(0.001 <= float(each["optimizer.rate"]) <= 0.1 for each in values)
    assert {each["training.batch"] for each in values} <= {*"45678"}
    assert {each["optimizer.schedule"] for each in values} == {"cosine", "linear"}
    below = sum(float(each["optimizer.rate"]) < 0.01 for each in values)
    assert 3 <= below <= 11  # half of a log scale


def test_a_search_that_was_killed_goes_on_the_same(tmp_path: Path) -> None:
    whole = search(tmp_path / "whole", 14)
    search(tmp_path / "killed", 14, stop=11)
    journal = tmp_path / "killed" / "study.journal"
    with journal.open("ab") as file:
        file.write(b'{"op_code": 5, "wor')  # killed while writing
    assert search(tmp_path / "killed", 14) == whole
    assert journal.read_bytes().endswith(b"\n")
    assert (tmp_path / "killed" / "sweep.json").read_text() == (
        tmp_path / "whole" / "sweep.json"
    ).read_text()


def test_a_run_without_a_score_is_done_before_new_trials(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", *SETTINGS, trials=3)
    with sweep.claim() as first:
        assert first is not None
        with sweep.claim() as second:  # as another process
            assert second is not None
            assert second.point == first.point
            assert (first.seed, second.seed) == (0, 1)
            with sweep.claim() as third:
                assert third is not None
                assert third.point != first.point
    with sweep.claim() as again:
        assert again == first
    assert build_table(sweep).points == 3


def test_a_trial_counts_when_all_its_seeds_are_done(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path / "sweep", *SETTINGS, trials=1)
    for score in (0.5, None):
        with sweep.claim() as run:
            assert run is not None
            sweep.write_score(run, RunScore(score=score))
    sweep.points()
    assert sweep.search is not None
    (trial,) = sweep.search.open_study().trials
    assert trial.value == 0.25  # a run that diverged counts as 0
    with sweep.claim() as run:
        assert run is None


def test_optuna_is_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert len(make_sweep(tmp_path / "grid", "optimizer.rate=0.1,0.2").points()) == 2
    with pytest.raises(UserError, match=r"pip install 'fullmatch\[sweep\]'"):
        make_sweep(tmp_path / "search", *SETTINGS, trials=2)


@pytest.mark.parametrize(
    "damage", [b"x\n", b"[" * 100_000 + b"\n", b'{"op_code": 0}\n', b"\xff\xfe"], ids=repr
)
def test_a_damaged_journal_is_named(damage: bytes, tmp_path: Path) -> None:
    search(tmp_path / "sweep", 2)
    journal = tmp_path / "sweep" / "study.journal"
    journal.write_bytes(damage + journal.read_bytes())
    with pytest.raises(UserError, match=r"study\.journal is damaged \(.*\); restore it, or start"):
        search(tmp_path / "sweep", 3)


def test_numbers_are_short() -> None:
    assert [shorten(text) for text in ("0.0123456789", "12", "cosine")] == [
        "0.0123457",
        "12",
        "cosine",
    ]


def test_a_missing_journal_is_not_made(tmp_path: Path) -> None:
    cut_torn_line(tmp_path / "journal")
    assert not (tmp_path / "journal").exists()
