"""How processes find each other and agree, and what is said where they cannot."""

from pathlib import Path

import pytest
import torch

from fullmatch import distributed
from fullmatch.distributed.processes import timeout
from fullmatch.errors import UserError
from tests.two_processes import in_two_processes


def agree() -> list[object]:
    rank = distributed.rank()
    results: list[object] = [
        distributed.on_first(lambda: (rank, distributed.world_size())),
        distributed.first_then_others(lambda: rank),
    ]
    try:
        distributed.on_first(lambda: 1 // 0)
    except (ZeroDivisionError, SystemExit) as error:
        results.append(type(error).__name__)
    distributed.require_same({"settings": "a", "versions": "b"})
    try:
        distributed.require_same({"settings": "a", "versions": f"b{rank}"})
    except UserError as error:
        results.append(str(error))
    return results


def test_the_first_works_for_all(tmp_path: Path) -> None:
    first, second = in_two_processes(agree, tmp_path)
    message = "process 1 has versions other than those of process 0"
    assert first[:3] == [(0, 1), 0, "ZeroDivisionError"]
    assert second[:3] == [(0, 1), 1, "SystemExit"]  # the first says what is wrong
    assert first[3].startswith(message)
    assert second[3] == first[3]


def test_one_process_agrees_with_itself() -> None:
    assert distributed.on_first(lambda: 1) == distributed.first_then_others(lambda: 1) == 1
    distributed.require_same({"settings": "a"})


def test_processes_that_cannot_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect() -> None:
        with distributed.process_group():
            pass

    for name in ("MASTER_ADDR", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match="start them with torchrun, or unset WORLD_SIZE"):
        connect()
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_PORT", "no port")
    with pytest.raises(UserError, match="cannot connect at localhost:no port"):
        connect()
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UserError, match="2 processes were started on a machine with 1 GPU"):
        connect()


def test_the_timeout_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert timeout().total_seconds() == 600
    monkeypatch.setenv("FULLMATCH_TIMEOUT", "30")
    assert timeout().total_seconds() == 30
    monkeypatch.setenv("FULLMATCH_TIMEOUT", "soon")
    with pytest.raises(UserError, match="FULLMATCH_TIMEOUT is 'soon', expected a number"):
        timeout()
