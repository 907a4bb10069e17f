"""A few cases of the fuzzer, and that it notices what it looks for."""

import os
import signal
import time
from pathlib import Path

from benchmarks.fuzz import run_cases
from benchmarks.isolation import Outcome, run_isolated


def test_no_case_ends_badly(tmp_path: Path) -> None:
    outcomes = run_cases(tmp_path, first=0, count=6)
    assert outcomes.total() == outcomes["ok"] + outcomes["refused"] >= 6


def test_bad_endings_are_noticed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    endings = {
        Outcome.TRACEBACK: lambda: 1 / 0,
        Outcome.MEMORY: lambda: bytearray(2**40),
        Outcome.EXECUTED: lambda: os.system("true"),
        Outcome.CRASH: lambda: os.kill(os.getpid(), signal.SIGKILL),
    }
    for outcome, work in endings.items():
        assert run_isolated(work, log).outcome is outcome
    assert run_isolated(lambda: time.sleep(9), log, patience=0.1).outcome is Outcome.HANG
