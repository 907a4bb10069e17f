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
    first = (out / "round-01" / "choice.safetensors").stat()
    main(["rounds", "digits", "--rounds", "2", "--out", str(out), *SETTINGS])
    assert (out / "round-01" / "choice.safetensors").stat() == first
    choice = load_file(out / "round-01" / "choice.safetensors")
    assert choice["negative"].shape == (1297, 10)
    second = json.loads((out / "round-02" / "result.json").read_text())
    assert second["algorithm"]["choice"] == str(out / "round-01" / "choice.safetensors")
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[-3:]] == ["round", "1", "2"]


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
