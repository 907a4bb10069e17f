"""Finished runs of a few steps on digits, shared by all tests of tables and figures."""

from pathlib import Path

import pytest

from fullmatch.reproduce.grid import ABLATIONS, METHODS, TableCell, TableRow, config_for
from fullmatch.reproduce.ledger import Ledger
from fullmatch.reproduce.provenance import current_code
from fullmatch.reproduce.recording import make_entry
from tests.small_runs import finish

CELL = TableCell("digits", 40)
STEPS = 8


def row_named(name: str) -> TableRow:
    return next(row for row in (*METHODS, *ABLATIONS) if row.name == name)


def train(row: TableRow, fold: int, out: Path, steps: int = STEPS) -> Path:
    from dataclasses import replace

    from fullmatch.experiment.start import start
    from fullmatch.storage.run_folder import RunFolder

    config = config_for(row, CELL, fold, steps)
    training = replace(config.training, batch=6, ratio=2, log_every=2, evaluate_every=4)
    finish(start(replace(config, training=training), RunFolder(out, new=True)))
    return out


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """FixMatch, FullMatch, and FixMatch with only EML."""
    root = tmp_path_factory.mktemp("runs")
    names = {"fixmatch": "FixMatch", "fullmatch": "FullMatch", "eml": "FixMatch+EML(BCE)"}
    return {key: train(row_named(name), 0, root / key) for key, name in names.items()}


@pytest.fixture
def ledger(runs: dict[str, Path], tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger")
    for run in runs.values():
        ledger.add(make_entry(run, current_code()))
    return ledger
