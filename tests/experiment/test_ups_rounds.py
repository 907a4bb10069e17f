"""Rounds of self-training: each learns from the one before, and none is done twice."""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file

from fullmatch.cli import main
from tests.small_runs import AWKWARD, TINY

SETTINGS = [word for setting in (*TINY, *AWKWARD) for word in ("--set", setting)]


def test_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rounds"
    main(["rounds", "digits", "--rounds", "1", "--out", str(out), *SETTINGS])
    first = (out / "round-01" / "choice.safetensors").stat().st_mtime_ns
    main(["rounds", "digits", "--rounds", "2", "--out", str(out), *SETTINGS])
    assert (out / "round-01" / "choice.safetensors").stat().st_mtime_ns == first
    choice = load_file(out / "round-01" / "choice.safetensors")
    assert choice["negative"].shape == (1297, 10)
    second = json.loads((out / "round-02" / "result.json").read_text())
    assert second["algorithm"]["choice"] == str(out / "round-01" / "choice.safetensors")
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[-3:]] == ["round", "1", "2"]


def test_another_number_of_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run_rounds(count: int, out: str) -> Path:
        main(["rounds", "digits", "--rounds", str(count), "--out", str(tmp_path / out), *SETTINGS])
        return tmp_path / out

    folder = run_rounds(2, "rounds")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(SystemExit, match="2"):
        run_rounds(3, "rounds")
    error = capsys.readouterr().err
    assert "has another number of rounds than 3" in error
    assert "--out" in error
    assert {path: path.read_bytes() for path in before} == before
    assert not (folder / "round-03").exists()
    # No round was trained on the choice of a single round yet, so it chooses again.
    extended, straight = run_rounds(1, "one"), run_rounds(3, "three")
    run_rounds(3, "one")
    for number in (1, 2, 3):
        place = f"round-{number:02d}/choice.safetensors"
        assert (extended / place).read_bytes() == (straight / place).read_bytes()


def test_a_round_killed_before_it_chose(tmp_path: Path) -> None:
    out = tmp_path / "rounds"
    main(["rounds", "digits", "--rounds", "1", "--out", str(out), *SETTINGS])
    place = out / "round-01" / "choice.safetensors"
    before = place.read_bytes()
    place.unlink()
    main(["rounds", "digits", "--rounds", "1", "--out", str(out), *SETTINGS])
    assert place.read_bytes() == before


@pytest.mark.parametrize(
    ("rounds", "message"),
    [("0", "expected 1 or more"), ("-1", "expected 1"), ("1.5", "is not an integer")],
)
def test_no_rounds(rounds: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["rounds", "digits", "--rounds", rounds])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--steps", "3"], "round-01 has other settings"),
        (["--seed", "1"], "round-01 has other settings"),
        (["--set", "algorithm.name=fixmatch"], "only ups_offline is trained in rounds"),
        (["--out", "{out}/round-01"], "is a run itself"),
    ],
)
def test_other_rounds_are_refused(
    more: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rounds"
    command = ["rounds", "digits", "--rounds", "1"]
    tiny = ["--set", "training.batch=6", "--set", "training.ratio=2"]
    main([*command, "--steps", "2", "--out", str(out), *tiny])
    more = [word.format(out=out) for word in more]
    if "--out" not in more:
        more += ["--out", str(out)]
    if "--steps" not in more:
        more += ["--steps", "2"]
    with pytest.raises(SystemExit, match="2"):
        main([*command, *tiny, *more])
    assert message in capsys.readouterr().err


def test_an_interrupt_names_the_command_that_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(run: object) -> None:
        raise SystemExit(130)

    monkeypatch.setattr("fullmatch.cli.progress.train_with_progress", stop)
    with pytest.raises(SystemExit, match="130"):
        main(["rounds", "digits", "--out", str(tmp_path / "rounds"), *SETTINGS])
    assert "or run the same command again: it resumes this round" in capsys.readouterr().out
