"""Entries are stored without overwriting anything, and damaged files are named."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.reproduce.entry import LedgerCurve, LedgerEntry
from fullmatch.reproduce.ledger import Ledger, read_entry
from tests.reproduce.conftest import row_named
from tests.reproduce.test_lines import make_entry


@pytest.fixture
def entry() -> LedgerEntry:
    return replace(make_entry(row_named("FullMatch"), 0, 0.8), commit="abc", dirty=True, code=None)


def test_written_and_read(entry: LedgerEntry, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "deep" / "ledger")
    path = ledger.add(entry)
    assert ledger.entries() == [entry]
    assert ledger.has(entry.name)
    assert ledger.add(entry) == path  # adding the same entry again changes nothing
    with pytest.raises(UserError, match="already holds another result"):
        ledger.add(replace(entry, steps=9))
    assert ledger.entries() == [entry]


def test_entry_with_nan_can_be_added_again(entry: LedgerEntry, tmp_path: Path) -> None:
    diverged = replace(entry, curves={"loss": LedgerCurve((1,), (float("nan"),))})
    ledger = Ledger(tmp_path)
    assert ledger.add(diverged) == ledger.add(diverged)
    with pytest.raises(UserError, match="already holds the same result, with commit abc"):
        ledger.add(replace(diverged, commit="abd"))


def test_same_result_with_other_provenance(entry: LedgerEntry, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    path = ledger.add(entry)
    for change, message in (
        ({"commit": "abd"}, "with commit abc instead of abd; if"),
        (
            {"commit": None, "dirty": None},
            "commit abc instead of unknown, dirty True instead of unknown; if",
        ),
        ({"notes": ("new",)}, "with other notes; if"),
    ):
        with pytest.raises(UserError) as caught:
            ledger.add(replace(entry, **change))
        assert f"{path.name} already holds the same result, " in str(caught.value)
        assert message in str(caught.value)
        assert "remove the file" in str(caught.value)
    with pytest.raises(UserError, match="already holds another result"):
        ledger.add(replace(entry, commit="abd", steps=9))
    assert ledger.entries() == [entry]


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"format": 1}'])
def test_damaged_entry(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UserError, match=r"x\.json is damaged \(.*record the run again"):
        Ledger(tmp_path).entries()


def test_entry_of_another_version(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"format": 99}')
    with pytest.raises(UserError, match=r"x\.json was written by another version"):
        Ledger(tmp_path).entries()


def test_entry_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no file .*x\.json; check the path"):
        read_entry(tmp_path / "x.json")


@pytest.mark.parametrize("name", ["code", "device", "steps_per_second"])
def test_entry_without_a_field(entry: LedgerEntry, tmp_path: Path, name: str) -> None:
    path = Ledger(tmp_path).add(entry)
    table = json.loads(path.read_text())
    del table[name]
    path.write_text(json.dumps(table))
    with pytest.raises(UserError, match=f"is damaged .*{name} is missing"):
        Ledger(tmp_path).entries()


@pytest.mark.parametrize("settings", [{}, [], {"data": {}, "algorithm": {}, "model": 0, "seed": 0}])
def test_entry_without_settings(entry: LedgerEntry, tmp_path: Path, settings: object) -> None:
    path = Ledger(tmp_path).add(entry)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"config": settings}))
    with pytest.raises(UserError, match=r"is damaged .*config"):
        Ledger(tmp_path).entries()
