"""What commands print about results."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from fullmatch.display import terminal
from fullmatch.display.terminal import (
    TextTable,
    can_draw_bars,
    print_line,
    show_evaluation,
    show_result,
    show_rounds,
    showing,
)
from fullmatch.inference.evaluate import Evaluation
from fullmatch.storage.result import FinalScores, PairedComparison, RunResult, Scores, Verdict
from fullmatch.storage.run_folder import RunFolder

SCORES = FinalScores(
    top1=0.964,
    ece=0.02,
    per_class=(0.964, None),
    confusion=((482, 18), (0, 0)),
    interval=(0.9438, 0.9771),
    median_last_20=0.961,
    best_chosen_on_test=0.968,
)
GAIN = PairedComparison(
    gain=0.074,
    interval=(0.0482, 0.0998),
    better=40,
    worse=3,
    p_value=0.001,
    verdict=Verdict.HELPED,
    images=500,
)
RESULT = RunResult(
    algorithm={"name": "fixmatch"},
    data="digits",
    classes=("zero", "one"),
    labels=40,
    unlabeled=1000,
    seed=0,
    steps=100,
    config_hash="",
    seconds=12.3,
    device="CPU",
    versions={},
    teacher=SCORES,
)


def write_run(path: Path, result: RunResult = RESULT) -> RunFolder:
    folder = RunFolder(path)
    path.mkdir(parents=True)
    folder.write_result(result)
    return folder


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_result_with_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", replace(RESULT, baseline=GAIN))
    baseline = replace(SCORES, top1=0.89, interval=(0.8602, 0.9148))
    write_run(tmp_path / "run" / "baseline", replace(RESULT, teacher=baseline))
    show_result(RunFolder(folder.path))
    lines = capsys.readouterr().out.splitlines()
    (labels,) = (line for line in lines if "the labels only" in line)
    (both,) = (line for line in lines if "labels and unlabeled images" in line)
    assert "89.0 %" in labels
    assert "86.0 to 91.5" in labels
    assert "96.4 %" in both
    assert "94.4 to 97.7" in both
    text = " ".join(" ".join(lines).split())
    assert "The unlabeled images helped: +7.4 points (95 % interval +4.8 to +10.0)." in text
    assert "last 20 evaluations 96.1 %; best, chosen on the test set, 96.8 %." in text
    for name in ("model.safetensors", "result.json", "metrics.jsonl", "config.toml"):
        assert str(folder.path / name) in text
    assert f"{folder.path / 'baseline'}/" in text


def test_baseline_of_an_earlier_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run")
    write_run(tmp_path / "run" / "labels-only")
    show_result(RunFolder(folder.path))
    text = printed(capsys)
    assert "the labels only" in text
    assert f"{folder.path / 'labels-only'}/" in text


def test_result_without_test_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = replace(RESULT, teacher=None)
    show_result(write_run(tmp_path / "run", result))
    assert "No test images, so no accuracy" in printed(capsys)
    show_result(write_run(tmp_path / "other", replace(result, estimate_missing="Not known.")))
    text = printed(capsys)
    assert "Not known." in text
    assert "No test images" not in text


def test_supervised_does_not_use_unlabeled_images(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show_result(write_run(tmp_path / "run", replace(RESULT, algorithm={"name": "supervised"})))
    text = printed(capsys)
    assert "the labels only" in text
    assert "unlabeled images" not in text


def test_no_unlabeled_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_result(write_run(tmp_path / "run", replace(RESULT, baseline=GAIN, unlabeled=40)))
    text = printed(capsys)
    assert "the labels, as unlabeled too" in text
    assert "The unlabeled images" not in text
    assert "no unlabeled images; using the labeled ones as unlabeled too helped" in text


def test_evaluation_with_odd_class_names(capsys: pytest.CaptureFixture[str]) -> None:
    scores = Scores(top1=2 / 3, ece=0.125, per_class=(0.5, None), confusion=((1, 1), (0, 0)))
    show_evaluation(
        Evaluation(
            data="my [pets]",
            images=3,
            classes=("[red]cat", "猫"),
            scores=scores,
            interval=(0.2, 0.94),
            notes=("2 of 5 test images are left out",),
        )
    )
    text = capsys.readouterr().out
    assert text.startswith("2 of 5 test images are left out\n")
    assert "my [pets], 3 test images" in text
    assert "66.7 % (20.0 to 94.0)" in text
    assert "recall of class [red]cat" in text
    assert "balanced accuracy" in text
    assert "no images" in text
    assert "top-5" not in text


def test_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = write_run(tmp_path / "1")
    second = write_run(tmp_path / "2", replace(RESULT, teacher=None))
    show_rounds([first, second])
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split()[:2] == ["round", "accuracy"]
    assert rows[0].split() == ["1", "96.4", "%", "94.4", "to", "97.7", str(first.path)]
    assert rows[1].split() == ["2", "-", "-", str(second.path)]


def test_text_tables_keep_long_lines_and_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    table = TextTable("name", "text")
    table.add("[bold]x", "y" * 200)
    table.show()
    heading, row = capsys.readouterr().out.splitlines()
    assert heading == "name     text"
    assert row == "[bold]x  " + "y" * 200


def test_nothing_is_shown_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with showing(False), showing(True):  # an inner caller does not turn it on again
        print_line("unseen")
        assert not can_draw_bars()
    print_line("[bold]:cat: seen")
    assert capsys.readouterr().out == "[bold]:cat: seen\n"


@pytest.mark.parametrize("widgets", [True, False])
def test_bars_in_notebooks_need_widgets(widgets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "console", Console(force_jupyter=True))
    monkeypatch.setattr(terminal, "find_spec", lambda name: object() if widgets else None)
    assert can_draw_bars() == widgets
