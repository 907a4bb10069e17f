"""An entry says all that is needed to judge and repeat a run, and survives the trip to disk."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.experiment.settings import config_of, resolve
from fullmatch.reproduce import ledger as ledgers
from fullmatch.reproduce import provenance
from fullmatch.reproduce.ledger import Ledger, curves, record, steps_per_second, thinned
from fullmatch.storage.run_folder import RunFolder


def test_entry(runs: dict[str, Path]) -> None:
    entry = record(runs["fullmatch"], fresh=True, notes=["a note"])
    result = json.loads((runs["fullmatch"] / "result.json").read_text())
    assert entry["steps"] == 8 and entry["notes"][-1] == "a note"
    assert entry["split"] == result["split"] and entry["fingerprint"] == result["config"]
    assert entry["code"] == provenance.CODE
    teacher = entry["scores"]["teacher"]
    for name in ("last", "median_last_20", "best_chosen_on_test", "ece", "per_class"):
        assert teacher[name] == result["teacher"][name]
    records = RunFolder(runs["fullmatch"]).records()
    assert entry["curves"]["teacher.top1"] == [
        [4, 8],
        [line["evaluation"]["teacher"]["top1"] for line in records if "evaluation" in line],
    ]
    assert {"selected", "k", "negatives", "seconds"} <= entry["curves"].keys()
    assert "root" not in entry["config"]["data"]


@pytest.mark.parametrize("name", ["fixmatch", "fullmatch", "eml"])
def test_the_command_asks_for_the_same_run(runs: dict[str, Path], name: str) -> None:
    words = shlex.split(record(runs[name])["command"])
    assert words[:3] == ["fullmatch", "train", "digits"]
    pairs = list(zip(words[3::2], words[4::2], strict=True))
    flags = {flag[2:]: value for flag, value in pairs if flag != "--set"}
    asked = resolve(
        data="digits",
        algorithm=flags["algorithm"],
        labels=int(flags["labels"]),
        steps=int(flags["steps"]),
        seed=int(flags["seed"]),
        assignments=[value for flag, value in pairs if flag == "--set"],
    )
    assert asked == config_of(RunFolder(runs[name]))


def test_written_and_read(runs: dict[str, Path], tmp_path: Path) -> None:
    ledger, entry = Ledger(tmp_path / "deep" / "ledger"), record(runs["eml"])
    path = ledger.add(entry)
    assert ledger.entries() == [entry]
    assert ledger.add(entry) == path  # the same once more changes nothing
    with pytest.raises(UserError, match="holds another result already"):
        ledger.add(entry | {"steps": 9})
    assert ledger.entries() == [entry]


def test_the_same_result_of_another_commit(runs: dict[str, Path], tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.add(entry := record(runs["eml"], commit="abc", dirty=True))
    for again, words in (
        (record(runs["eml"], commit="abd", dirty=True), "with commit abc instead of abd; if"),
        (record(runs["eml"]), "commit abc instead of unknown, dirty True instead of unknown; if"),
        (record(runs["eml"], commit="abc", dirty=True, notes=["new"]), "with other notes; if"),
    ):
        with pytest.raises(UserError) as caught:
            ledger.add(again)
        assert "eml.json holds the same result already, " in str(caught.value)
        assert words in str(caught.value) and "remove the file" in str(caught.value)
    with pytest.raises(UserError, match="holds another result already"):
        ledger.add(entry | {"commit": "abd", "steps": 9})
    assert ledger.entries() == [entry]


def test_best_top5_belongs_to_the_best_top1() -> None:
    seen = [{"top1": 0.5, "top5": 0.7}, {"top1": 0.6, "top5": 0.65}, {"top1": 0.55, "top5": 0.9}]
    records = [{"step": 1, "evaluation": {"teacher": each}} for each in seen]
    assert ledgers.scores({"teacher": {}}, records, "teacher") == {"top5_at_best": 0.65}


def test_thinned() -> None:
    curve = [list(range(1000)), [i / 3 for i in range(1000)]]
    steps, values = thinned(curve)
    assert len(steps) == len(values) == 200
    assert (steps[0], steps[-1], values[-1]) == (0, 999, 333.0)
    assert all(v == float(f"{s / 3:.5g}") for s, v in zip(steps, values, strict=True))
    assert thinned([[1, 2], [0.5, 1]]) == [[1, 2], [0.5, 1]]


def test_curves_of_metrics_that_come_and_go() -> None:
    found = curves([{"step": 1, "loss": 2.0, "seconds": 1.0}, {"step": 2, "k": 3.0}])
    assert found == {"loss": [[1], [2.0]], "seconds": [[1], [1.0]], "k": [[2], [3.0]]}


def test_speed_leaves_the_start_out() -> None:
    records = [{"step": 10, "seconds": 40.0}, {"step": 20, "seconds": 41.0}]
    assert steps_per_second([*records, {"step": 30, "seconds": 42.0}]) == 10.0
    assert steps_per_second(records[:1]) is None


def test_unfinished_or_damaged_run(runs: dict[str, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(runs["fixmatch"], copy)
    (copy / "result.json").write_text("{")
    with pytest.raises(UserError, match="damaged"):
        record(copy)
    (copy / "result.json").unlink()
    with pytest.raises(UserError, match="not finished; go on with: fullmatch resume"):
        record(copy)
    with pytest.raises(UserError, match="is no run folder"):
        record(tmp_path)


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"format": 99}'])
def test_damaged_entry(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UserError, match=r"x\.json"):
        Ledger(tmp_path).entries()


def test_unknown_code_is_not_guessed(runs: dict[str, Path]) -> None:
    entry = record(runs["fixmatch"])
    assert entry["commit"] is None and entry["code"] is None
    entry = record(runs["fixmatch"], commit="abcdef", dirty=True)
    assert entry["commit"] == "abcdef" and entry["dirty"] and entry["code"] is None


def test_an_entry_that_lacks_most_of_itself(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"format": 1}', encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.json is no entry of the ledger"):
        Ledger(tmp_path).entries()


@pytest.mark.parametrize("lost", ["code", "device", "steps_per_second"])
def test_an_entry_that_lacks_something(ledger: Ledger, lost: str) -> None:
    path = ledger.folder / "eml.json"
    entry = json.loads(path.read_text())
    del entry[lost]
    path.write_text(json.dumps(entry))
    with pytest.raises(UserError, match="is no entry of the ledger"):
        ledger.entries()


@pytest.mark.parametrize("settings", [{}, [], {"data": {}, "algorithm": {}, "model": 0, "seed": 0}])
def test_an_entry_whose_settings_lack_something(ledger: Ledger, settings: object) -> None:
    path = ledger.folder / "eml.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"config": settings}))
    with pytest.raises(UserError, match="is no entry of the ledger"):
        ledger.entries()


def test_a_name_of_a_commit_is_kept_as_its_hash(
    runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "git", lambda *words: b"0123abcd\n")
    assert record(runs["eml"], commit="HEAD", dirty=True)["commit"] == "0123abcd"
    monkeypatch.setattr(provenance, "git", lambda *words: None)
    assert record(runs["eml"], commit="abc", dirty=True)["commit"] == "abc"


def test_a_result_that_lacks_something(runs: dict[str, Path], tmp_path: Path) -> None:
    damaged = shutil.copytree(runs["eml"], tmp_path / "damaged")
    (damaged / "result.json").write_text('{"steps": 8}')
    with pytest.raises(UserError, match="is damaged; delete it"):
        record(damaged)
