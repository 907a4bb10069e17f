"""Progress of training: a bar in a terminal, a few lines elsewhere."""

from pathlib import Path

import pytest
from rich.console import Console

from fullmatch.display import terminal
from fullmatch.display.progress import FoldLines, TrainingProgress
from fullmatch.experiment.cross_validation import FoldProgress
from fullmatch.training.trainer import Record
from tests.small_runs import begin, config


def use_console(monkeypatch: pytest.MonkeyPatch, *, live: bool) -> None:
    console = Console(force_terminal=live, width=100, highlight=False)
    monkeypatch.setattr(terminal, "console", console)


def test_lines_outside_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = begin(config("fullmatch", "training.steps=100"), tmp_path / "run")
    with TrainingProgress(run) as progress:
        for step in range(1, 101):
            metrics = {"loss": 1.5, "selected": 0.25, "k": 3.0}
            progress.show(Record(step, metrics, seconds=step / 10))
            progress.show(Record(step, paused=True))
    lines = capsys.readouterr().out.splitlines()
    assert 10 <= len(lines) <= 12
    assert lines[0] == "fullmatch 1/100  10 s left  loss 1.500  used 25 %  k 3.0"
    assert lines[-1] == "fullmatch 100/100  0 s left  loss 1.500  used 25 %  k 3.0"


@pytest.mark.parametrize("live", [False, True])
def test_time_left_does_not_include_compilation(
    live: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = begin(config("fullmatch", "training.steps=100"), tmp_path / "run")
    run.execution = "graph"
    use_console(monkeypatch, live=live)
    progress = TrainingProgress(run)
    now = 0.0
    progress.bar.get_time = lambda: now
    progress.bar.reset(progress.task)  # starts with this clock
    for now, step in ((40.0, 20), (42.0, 40)):
        progress.show(Record(step, {"loss": 1.5}, seconds=now))
    if live:
        assert progress.bar.tasks[0].time_remaining == 6
    else:
        assert capsys.readouterr().out.splitlines() == [
            "fullmatch 20/100  loss 1.500",
            "fullmatch 40/100  6 s left  loss 1.500",
        ]


def test_a_bar_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_console(monkeypatch, live=True)
    run = begin(config("supervised"), tmp_path / "run")
    with TrainingProgress(run) as progress:
        for record in run.records():
            progress.show(record)
    text = capsys.readouterr().out
    assert "8/8" in text
    assert "loss" in text
    assert "test" in text
    assert "used" not in text


def test_one_line_per_fold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, now = FoldLines(), 0.0
    monkeypatch.setattr("fullmatch.display.progress.monotonic", lambda: now)
    for fold in range(1, 4):  # the first fold was finished earlier
        for baseline in (False, True):
            for step in (0, 50, 100):
                lines.show(FoldProgress(fold, 4, baseline, step, 100))
                now += 1
    assert capsys.readouterr().out.splitlines() == [
        "estimate 2/4  12 s left",
        "estimate 3/4  6 s left",
    ]
