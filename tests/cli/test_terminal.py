"""What a person sees: lines outside a terminal, honest tables, listings that can be searched."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from fullmatch.algorithms import ALGORITHMS
from fullmatch.cli import terminal as display
from fullmatch.data import DATASETS
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.trainer import Record
from tests.small_runs import begin, config


def result(tmp_path: Path, **more: object) -> RunFolder:
    """A run folder of 500 test images with 96.4 % against 89.0 %."""
    folder = RunFolder(tmp_path / "run")
    scores = {"last": 0.964, "interval": [0.9438, 0.9771], "median_last_20": 0.961}
    content = {
        "data": "digits",
        "labels": 40,
        "algorithm": {"name": "fixmatch"},
        "seconds": 12.3,
        "teacher": scores | {"best_chosen_on_test": 0.968},
    }
    folder.path.mkdir()
    folder.result.write_text(json.dumps(content | more))
    return folder


def test_table_of_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gain = {"gain": 0.074, "interval": [0.0482, 0.0998], "verdict": "helped", "images": 500}
    folder = result(tmp_path, labels_only=gain)
    inner = folder.path / "labels-only"
    inner.mkdir()
    alone = {"teacher": {"last": 0.89, "interval": [0.8602, 0.9148]}}
    (inner / "result.json").write_text(json.dumps(alone))
    display.show_result(folder)
    lines = capsys.readouterr().out.splitlines()
    (labels,) = (line for line in lines if "the labels only" in line)
    (both,) = (line for line in lines if "labels and unlabeled images" in line)
    assert "89.0 %" in labels and "86.0 to 91.5" in labels
    assert "96.4 %" in both and "94.4 to 97.7" in both
    text = " ".join(" ".join(lines).split())
    assert "The unlabeled images helped: +7.4 points (95 % interval +4.8 to +10.0)." in text
    assert "median of the last 20 evaluations 96.1 %; best, chosen on test, 96.8 %." in text
    for name in ("model.safetensors", "result.json", "metrics.jsonl", "config.toml"):
        assert str(folder.path / name) in text
    assert f"{inner}/" in text


def test_no_test_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = result(tmp_path)
    content = json.loads(folder.result.read_text())
    del content["teacher"]
    folder.result.write_text(json.dumps(content))
    display.show_result(folder)
    assert "No test images, so no accuracy" in capsys.readouterr().out


def test_supervised_is_not_said_to_use_unlabeled_images(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    display.show_result(result(tmp_path, algorithm={"name": "supervised"}))
    found = capsys.readouterr().out
    assert "the labels only" in found and "unlabeled images" not in found


def test_scores_with_odd_class_names(capsys: pytest.CaptureFixture[str]) -> None:
    display.show_scores(
        {
            "data": "my [pets]",
            "images": 3,
            "top1": 2 / 3,
            "interval": [0.2, 0.94],
            "top5": None,
            "ece": 0.125,
            "classes": ("[red]cat", "猫"),
            "per_class": (0.5, None),
        }
    )
    found = capsys.readouterr().out
    assert "my [pets], 3 test images" in found and "66.7 % (20.0 to 94.0)" in found
    assert "class [red]cat" in found and "no images" in found and "top-5" not in found


def test_progress_outside_a_terminal_is_a_few_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = begin(config("fullmatch", "training.steps=100"), tmp_path / "run")
    with display.ProgressBar(run) as bar:
        for step in range(1, 101):
            bar.show(Record(step, {"loss": 1.5, "selected": 0.25, "k": 3.0}, seconds=step / 10))
            bar.show(Record(step, paused=True))
    lines = capsys.readouterr().out.splitlines()
    assert 10 <= len(lines) <= 12
    assert lines[0] == "fullmatch 1/100  10 s left  loss 1.500  used 25 %  k 3.0"
    assert lines[-1] == "fullmatch 100/100  0 s left  loss 1.500  used 25 %  k 3.0"


@pytest.mark.parametrize("live", [False, True])
def test_time_left_does_not_count_the_compiler(
    live: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = begin(config("fullmatch", "training.steps=100"), tmp_path / "run")
    run.eager = False
    console = Console(force_terminal=live, width=100, highlight=False)
    monkeypatch.setattr(display, "console", console)
    bar = display.ProgressBar(run)
    now = 0.0
    bar.progress.get_time = lambda: now
    bar.progress.reset(bar.task)  # begins by this clock
    for now, step in ((40.0, 20), (42.0, 40)):
        bar.show(Record(step, {"loss": 1.5}, seconds=now))
    if live:
        assert bar.progress.tasks[0].time_remaining == 6
    else:
        assert capsys.readouterr().out.splitlines() == [
            "fullmatch 20/100  loss 1.500",
            "fullmatch 40/100  6 s left  loss 1.500",
        ]


def test_progress_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console(force_terminal=True, width=100, highlight=False)
    monkeypatch.setattr(display, "console", console)
    run = begin(config("supervised"), tmp_path / "run")
    with display.ProgressBar(run) as bar:
        for record in run.records():
            bar.show(record)
    found = capsys.readouterr().out
    assert "8/8" in found and "loss" in found and "test" in found and "used" not in found


def test_listings(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    display.list_algorithms()
    found = capsys.readouterr().out
    assert all(any(line.startswith(name) for line in found.splitlines()) for name in ALGORITHMS)
    assert "fullmatch = full-fixmatch" in found and "fullflex = full-flexmatch" in found
    monkeypatch.setenv("FULLMATCH_DATA", "/some where/data")
    display.list_datasets()
    found = capsys.readouterr().out
    assert all(name in found for name in DATASETS) and "embedded" in found
    assert "looked for in /some where/data; to change it: FULLMATCH_DATA=FOLDER" in found
    display.list_models()
    found = capsys.readouterr().out
    assert "wrn-28-2" in found and "<any torchvision classifier>" in found


def test_no_unlabeled_images_are_not_praised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gain = {"gain": 0.074, "interval": [0.0482, 0.0998], "verdict": "helped", "images": 500}
    display.show_result(result(tmp_path, labels_only=gain, unlabeled=40))
    said = " ".join(capsys.readouterr().out.split())
    assert "the labels, as unlabeled too" in said and "The unlabeled images" not in said
    assert "no unlabeled images; learning from the labeled ones as if they were helped" in said
