"""Finished runs of a few steps on digits, made once for all tests of the tables and figures."""

from pathlib import Path

import pytest

from fullmatch.reproduce.grid import ABLATIONS, METHODS, Cell, Row, config_for
from fullmatch.reproduce.ledger import Ledger, record
from tests.small_runs import finish

CELL = Cell("digits", 40)
STEPS = 8


def method(name: str) -> Row:
    return next(row for row in (*METHODS, *ABLATIONS) if row.name == name)


def trained(row: Row, fold: int, out: Path, steps: int = STEPS) -> Path:
    from dataclasses import replace

    from fullmatch.experiment.run import start
    from fullmatch.storage.run_folder import RunFolder

    config = config_for(row, CELL, fold, steps)
    training = replace(config.training, batch=6, ratio=2, log_every=2, evaluate_every=4)
    finish(start(replace(config, training=training), RunFolder(out, new=True)))
    return out


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """FixMatch, FullMatch and FixMatch with EML alone."""
    root = tmp_path_factory.mktemp("runs")
    wanted = {"fixmatch": "FixMatch", "fullmatch": "FullMatch", "eml": "FixMatch+EML(BCE)"}
    return {key: trained(method(name), 0, root / key) for key, name in wanted.items()}


@pytest.fixture
def ledger(runs: dict[str, Path], tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger")
    for run in runs.values():
        ledger.add(record(run, fresh=True))
    return ledger
