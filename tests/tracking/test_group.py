"""Trouble in a tracker never stops a run."""

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

import fullmatch
from fullmatch.errors import UserError
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.tracking.group import TrackerGroup, open_trackers, read_identities
from fullmatch.tracking.tracker import (
    TRACKERS,
    Outcome,
    TrackedRun,
    flatten_record,
    flatten_settings,
)


class BrokenTracker:
    """Fails in one of its methods."""

    def __init__(self, broken: str) -> None:
        self.broken = broken
        self.calls: list[str] = []

    def call(self, name: str) -> None:
        self.calls.append(name)
        if name == self.broken:
            raise OSError("the server\nis gone")

    def begin(self, run: TrackedRun) -> str:
        self.call("begin")
        return "its name"

    def log(self, values: Mapping[str, float], step: int) -> None:
        self.call("log")

    def finish(self, outcome: Outcome) -> None:
        self.call("finish")

    def close(self) -> None:
        self.call("close")


@pytest.mark.parametrize("broken", ["begin", "log", "finish", "close", "nothing"])
def test_one_warning_and_the_others_go_on(broken: str, tmp_path: Path) -> None:
    warnings: list[str] = []
    bad, good = BrokenTracker(broken), BrokenTracker("nothing")
    group = TrackerGroup({"bad": bad, "good": good}, warnings.append)
    group.begin(tmp_path, {}, 0)
    for step in (1, 2):
        group.log(LogRecord(step, {"loss": 1.0}))
    group.log(LogRecord(3, {}))  # nothing to log
    group.finish(lambda: Outcome({}, ""))
    line = "bad does not track this run any longer: the server is gone"
    assert warnings == ([] if broken == "nothing" else [line])
    assert good.calls == ["begin", "log", "log", "finish", "close"]
    assert bad.calls == good.calls[: len(bad.calls)] or broken == "log"
    expected = {"good"} if broken == "begin" else {"bad", "good"}
    assert set(read_identities(tmp_path)) == expected


def test_unknown_and_missing_trackers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"no tracker 'tensorbord'.* did you mean 'tensorboard'"):
        open_trackers("tensorbord", print)
    monkeypatch.setattr("fullmatch.tracking.tracker.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'fullmatch\[mlflow\]'"):
        open_trackers(["mlflow"], print)


def test_a_failing_disk_does_not_stop_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"training.batch": 4, "training.ratio": 2, "model.name": "wrn-10-1"}
    training = fullmatch.start("digits", labels=20, steps=2, settings=settings, out=tmp_path / "r")
    broken = BrokenTracker("log")
    training.trackers.trackers["mine"] = broken
    run = training.finish()
    assert run.result.steps == 2
    assert capsys.readouterr().out.count("mine does not track this run any longer") == 1


def test_names() -> None:
    record = LogRecord(3, {"loss": 0.5}, 1.5, {"teacher": {"top1": 0.9}})
    assert flatten_record(record) == {
        "train/loss": 0.5,
        "test/teacher.top1": 0.9,
        "seconds": 1.5,
    }
    table = {"a": {"b": {"c": 1}, "d": [1, 2]}, "e": True}
    assert flatten_settings(table) == {"a.b.c": 1, "a.d": "[1, 2]", "e": True}


def test_none_is_imported_unless_it_is_asked_for() -> None:
    source = Path(fullmatch.__file__).parent
    packages = {package for _, package in TRACKERS.values()}
    importers = {
        path.stem
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [*(each.name for each in node.names), getattr(node, "module", None) or ""]
        if name.split(".")[0] in packages
    }
    assert importers == {module for module, _ in TRACKERS.values()}
