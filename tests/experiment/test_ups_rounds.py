"""Rounds of self-training: each learns from the one before, none is done twice."""

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
    def called(count: int, out: str) -> Path:
        main(["rounds", "digits", "--rounds", str(count), "--out", str(tmp_path / out), *SETTINGS])
        return tmp_path / out

    folder = called(2, "rounds")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(SystemExit, match="2"):
        called(3, "rounds")
    said = capsys.readouterr().err
    assert "has another number of rounds than 3" in said and "--out" in said
    assert {path: path.read_bytes() for path in before} == before
    assert not (folder / "round-03").exists()
    # Nothing has been learned yet from what a single round chose: it chooses again.
    extended, straight = called(1, "one"), called(3, "three")
    called(3, "one")
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
    ("rounds", "words"), [("0", "expected 1 or more"), ("-1", "expected 1"), ("1.5", "no whole")]
)
def test_no_rounds(rounds: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["rounds", "digits", "--rounds", rounds])
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--steps", "3"], "round-01 has other settings"),
        (["--seed", "1"], "round-01 has other settings"),
        (["--set", "algorithm.name=fixmatch"], "rounds are of ups_offline alone"),
        (["--out", "{out}/round-01"], "is a run itself"),
    ],
)
def test_other_rounds_are_not_taken_for_these(
    more: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rounds"
    asked = ["rounds", "digits", "--rounds", "1"]
    tiny = ["--set", "training.batch=6", "--set", "training.ratio=2"]
    main([*asked, "--steps", "2", "--out", str(out), *tiny])
    more = [word.format(out=out) for word in more]
    if "--out" not in more:
        more += ["--out", str(out)]
    if "--steps" not in more:
        more += ["--steps", "2"]
    with pytest.raises(SystemExit, match="2"):
        main([*asked, *tiny, *more])
    assert words in capsys.readouterr().err


def test_an_interrupt_names_the_command_that_does_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(run: object) -> None:
        raise SystemExit(130)

    monkeypatch.setattr("fullmatch.cli.progress.follow", stop)
    with pytest.raises(SystemExit, match="130"):
        main(["rounds", "digits", "--out", str(tmp_path / "rounds"), *SETTINGS])
    assert "give the same command again" in capsys.readouterr().out
