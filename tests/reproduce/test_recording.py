"""An entry has all that is needed to judge and repeat a run."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.experiment.settings import read_config, resolve
from fullmatch.reproduce import provenance
from fullmatch.reproduce.entry import LedgerCurve, entry_table
from fullmatch.reproduce.provenance import committed_code, current_code
from fullmatch.reproduce.recording import (
    collect_curves,
    make_entry,
    median_speed,
    thin_curve,
    top5_at_best,
)
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.run_folder import RunFolder

EARLIER_RUNS = Path(__file__).parents[1] / "fixtures" / "runs-0.1"


def test_entry(runs: dict[str, Path]) -> None:
    entry = make_entry(runs["fullmatch"], current_code(), ["a note"])
    result = RunFolder(runs["fullmatch"]).read_result()
    assert entry.steps == 8
    assert entry.notes == (*result.notes, "a note")
    assert entry.split == result.split_hash
    assert entry.fingerprint == result.config_hash
    assert entry.code == provenance.CODE
    assert entry.teacher is not None
    assert result.teacher is not None
    assert entry.teacher.last == result.teacher.top1
    for name in ("median_last_20", "best_chosen_on_test", "interval", "top5", "ece", "per_class"):
        assert getattr(entry.teacher, name) == getattr(result.teacher, name)
    records = RunFolder(runs["fullmatch"]).read_records()
    assert entry.curves["teacher.top1"] == LedgerCurve(
        (4, 8), tuple(r.evaluation["teacher"]["top1"] for r in records if r.evaluation)
    )
    assert {"selected", "k", "negatives", "seconds"} <= entry.curves.keys()
    assert "root" not in entry.config["data"]


@pytest.mark.parametrize("name", ["fixmatch", "fullmatch", "eml"])
def test_command_repeats_the_run(runs: dict[str, Path], name: str) -> None:
    words = shlex.split(make_entry(runs[name]).command)
    assert words[:3] == ["fullmatch", "train", "digits"]
    pairs = list(zip(words[3::2], words[4::2], strict=True))
    flags = {flag[2:]: value for flag, value in pairs if flag != "--set"}
    config = resolve(
        data="digits",
        algorithm=flags["algorithm"],
        labels=int(flags["labels"]),
        steps=int(flags["steps"]),
        seed=int(flags["seed"]),
        assignments=[value for flag, value in pairs if flag == "--set"],
    )
    assert config == read_config(RunFolder(runs[name]))


def test_best_top5_belongs_to_the_best_top1() -> None:
    pairs = ((0.5, 0.7), (0.6, 0.65), (0.55, 0.9))
    records = [
        LogRecord(step, {}, evaluation={"teacher": {"top1": top1, "top5": top5}})
        for step, (top1, top5) in enumerate(pairs)
    ]
    assert top5_at_best(records, "teacher") == 0.65
    assert top5_at_best(records, "student") is None
    few_classes = LogRecord(1, {}, evaluation={"teacher": {"top1": 0.5}})
    assert top5_at_best([few_classes], "teacher") is None


def test_thin_curve() -> None:
    thin = thin_curve(LedgerCurve(tuple(range(1000)), tuple(i / 3 for i in range(1000))))
    assert len(thin.steps) == len(thin.values) == 200
    assert (thin.steps[0], thin.steps[-1], thin.values[-1]) == (0, 999, 333.0)
    pairs = zip(thin.steps, thin.values, strict=True)
    assert all(value == float(f"{step / 3:.5g}") for step, value in pairs)
    short = LedgerCurve((1, 2), (0.5, 1))
    assert thin_curve(short) == short


def test_metrics_may_be_logged_at_some_steps_only() -> None:
    evaluation = {"teacher": {"top1": 0.5}}
    curves = collect_curves(
        [LogRecord(1, {"loss": 2.0}, 1.0), LogRecord(2, {"k": 3.0}, 2.0, evaluation)]
    )
    assert list(curves.items()) == [
        ("loss", LedgerCurve((1,), (2.0,))),
        ("seconds", LedgerCurve((1, 2), (1.0, 2.0))),
        ("k", LedgerCurve((2,), (3.0,))),
        ("teacher.top1", LedgerCurve((2,), (0.5,))),
    ]


def test_speed_does_not_include_start_up() -> None:
    records = [LogRecord(10, {}, 40.0), LogRecord(20, {}, 41.0), LogRecord(30, {}, 42.0)]
    assert median_speed(records) == 10.0
    assert median_speed(records[:1]) is None


def test_unfinished_or_damaged_run(runs: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(runs["fixmatch"], tmp_path / "copy")
    for text in ("{", '{"steps": 8}'):
        (copy / "result.json").write_text(text)
        with pytest.raises(UserError, match=r"result\.json is damaged \(.*; write it again with"):
            make_entry(copy)
    (copy / "result.json").unlink()
    with pytest.raises(UserError, match="not finished; resume with: fullmatch resume"):
        make_entry(copy)
    with pytest.raises(UserError, match="is not a run folder"):
        make_entry(tmp_path)


def test_damaged_log(runs: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(runs["fixmatch"], tmp_path / "copy")
    (copy / "metrics.jsonl").write_text('{"loss": 1}\n')
    with pytest.raises(UserError, match=r"metrics\.jsonl is damaged"):
        make_entry(copy)


def test_runs_of_fullmatch_0_1() -> None:
    entry = make_entry(EARLIER_RUNS / "finished")
    result = json.loads((EARLIER_RUNS / "finished" / "result.json").read_text())
    assert entry.split == result["split"]
    assert entry.fingerprint == result["config"]
    teacher = entry_table(entry)["scores"]["teacher"]
    names = ("last", "median_last_20", "best_chosen_on_test", "ece")
    assert {name: teacher[name] for name in names} == {
        name: result["teacher"][name] for name in names
    }
    assert make_entry(EARLIER_RUNS / "own").scores == {}  # it has no test images


def test_unknown_code_is_not_guessed(runs: dict[str, Path]) -> None:
    entry = make_entry(runs["fixmatch"])
    assert entry.commit is None
    assert entry.dirty is None
    assert entry.code is None
    entry = make_entry(runs["fixmatch"], committed_code("abcdef", dirty=True))
    assert entry.commit == "abcdef"
    assert entry.dirty
    assert entry.code is None
