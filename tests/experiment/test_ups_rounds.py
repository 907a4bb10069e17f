"""Rounds of self-training: each learns from the one before, and none is done twice."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from fullmatch.algorithms.ups_rounds import PseudoLabelChoice
from fullmatch.cli import main
from fullmatch.experiment.start import resume, start
from fullmatch.experiment.ups_rounds import read_balanced, write_choice
from fullmatch.storage.run_folder import RunFolder
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


def test_more_rounds_continue_the_finished_ones(tmp_path: Path) -> None:
    def run_rounds(count: int, out: str) -> Path:
        main(["rounds", "digits", "--rounds", str(count), "--out", str(tmp_path / out), *SETTINGS])
        return tmp_path / out

    extended, straight = run_rounds(1, "one"), run_rounds(3, "three")
    run_rounds(3, "one")
    for number in (1, 2, 3):
        place = f"round-{number:02d}/choice.safetensors"
        assert (extended / place).read_bytes() == (straight / place).read_bytes()


@pytest.mark.parametrize(("setting", "balanced"), [(None, "TTT"), (0, "FFF"), (2, "TTF")])
def test_which_rounds_are_balanced(setting: int | None, balanced: str, tmp_path: Path) -> None:
    """The authors balance the first six rounds on CIFAR-10, and none on CIFAR-100."""
    more = [] if setting is None else ["--set", f"algorithm.balanced_rounds={setting}"]
    main(["rounds", "digits", "--rounds", "3", "--out", str(tmp_path / "r"), *SETTINGS, *more])
    files = [tmp_path / "r" / f"round-{number:02d}" / "choice.safetensors" for number in (1, 2, 3)]
    assert "".join(str(read_balanced(path))[0] for path in files) == balanced


def test_a_choice_by_other_rules_is_made_again_unless_it_was_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rounds"
    command = ["rounds", "digits", "--rounds", "1", "--out", str(out), *SETTINGS]
    main(command)
    place = out / "round-01" / "choice.safetensors"
    written = place.read_bytes()
    old = PseudoLabelChoice(**load_file(place))
    write_choice(place, old, balanced=False)  # as earlier versions did in the last round
    main(command)
    assert place.read_bytes() == written
    write_choice(place, old, balanced=False)
    (out / "round-02").mkdir()
    with pytest.raises(SystemExit, match="2"):
        main(command)
    error = capsys.readouterr().err
    assert "another number of balanced rounds than 6" in error
    assert "--out" in error


def test_a_round_learns_labels_and_pseudo_labels_as_one_set(tmp_path: Path) -> None:
    out = tmp_path / "rounds"
    main(["rounds", "digits", "--rounds", "1", "--out", str(out), *SETTINGS])
    place = out / "round-01" / "choice.safetensors"
    run = resume(RunFolder(out / "round-01"))
    labeled = run.dataset.labeled
    choice = PseudoLabelChoice(**load_file(place))
    assert not choice.positive[labeled].any()
    assert not choice.negative[labeled].any()
    # Ten more labels, all of them 7, and twenty images without a certain label.
    free = (~torch.isin(torch.arange(len(choice.label)), labeled)).nonzero().flatten()
    choice.positive[:] = torch.isin(torch.arange(len(choice.label)), free[:10])
    choice.label[:] = 7
    choice.negative[:] = torch.isin(torch.arange(len(choice.label)), free[10:30])[:, None]
    write_choice(place, choice, balanced=True)
    config = replace(run.config, algorithm=replace(run.config.algorithm, choice=str(place)))
    second = start(config, RunFolder(tmp_path / "second"))
    feed = second.step.feed
    drawn: set[int] = set()
    for step in range(60):
        feed.seek(step)
        raw = feed.batch()
        assert raw.labels.equal(
            torch.cat([run.dataset.labels[labeled], torch.full((10,), 7)])[raw.labeled_index]
        )
        drawn |= set(raw.labeled_index.tolist())
        assert len(raw.labels) + len(raw.unlabeled) == 18
        assert len(raw.unlabeled) == 18 * 20 // (len(labeled) + 10 + 20)
    assert drawn == set(range(len(labeled) + 10))
    assert second.dataset.labeled.equal(labeled)


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
        raise KeyboardInterrupt

    monkeypatch.setattr("fullmatch.display.progress.train_with_progress", stop)
    with pytest.raises(SystemExit, match="130"):
        main(["rounds", "digits", "--out", str(tmp_path / "rounds"), *SETTINGS])
    assert "or run the same command again: it resumes this round" in capsys.readouterr().out
