"""Several processes train as one: same state in each, one that writes, and any number resumes."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fullmatch import distributed
from fullmatch.algorithms import names
from fullmatch.data import SemiDataset
from fullmatch.errors import UserError
from fullmatch.experiment import team
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.inputs import split_of
from fullmatch.experiment.run import resume
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.execution import resolve_execution
from tests.small_runs import config, digits, write_embeddings
from tests.two_processes import in_two_processes

SHORT = "--set training.batch=6 --set training.ratio=2 --set training.log_every=2"
PERFORMANCE = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")


def launched(words: str, place: Path) -> "subprocess.Popen[str]":
    """`torchrun` with two processes on this machine, in a session that can be signalled whole."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return subprocess.Popen(
        [*run, "-m", "fullmatch", *words.split()],
        cwd=place,
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def states(place: str) -> dict[str, dict[str, Tensor]]:
    """Of every algorithm after three steps."""
    found = {}
    for name in names():
        semco = [f"algorithm.embeddings={place}/embeddings.npy"] if name.endswith("semco") else []
        one = config(name, *semco)
        run = Assembly(one, SemiDataset.from_source(digits(), split_of(one, digits())))
        run.state.train()
        for _ in range(3):
            run.trainer.take_step()
        found[name] = run.state.state_dict()
    return found


def test_every_algorithm_is_in_the_same_state_in_each_process(tmp_path: Path) -> None:
    write_embeddings(tmp_path)
    first, second = in_two_processes(states, tmp_path, str(tmp_path))
    for name in names():
        for what, tensor in first[name].items():
            if what == "totals":
                assert not torch.equal(tensor, second[name][what])  # each saw other images
            else:
                assert torch.equal(tensor, second[name][what]), f"{name}: {what}"


def test_the_first_process_alone_writes_and_speaks(tmp_path: Path) -> None:
    (documented,) = re.findall(r"^torchrun .* -m fullmatch (.*)$", PERFORMANCE, re.MULTILINE)
    run = launched(f"{documented} {SHORT} --steps 4 --baseline --out two", tmp_path)
    said, _ = run.communicate(timeout=240)
    assert run.returncode == 0, said
    assert said.count("runs on 2 x CPU") == 2  # the run, and its baseline
    assert said.count("Accuracy is of the averaged model") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["two"]


def test_a_mistake_ends_all_processes(tmp_path: Path) -> None:
    run = launched(f"train digits {SHORT} --steps 4 --set training.batch=5", tmp_path)
    said, _ = run.communicate(timeout=240)
    assert run.returncode != 0
    assert "fullmatch: 2 processes cannot share 5 labeled images per step evenly" in said
    assert not list(tmp_path.iterdir())


def test_an_interrupt_saves_and_one_process_goes_on(tmp_path: Path) -> None:
    run = launched("train digits --steps 100000 --set training.log_every=1 --out two", tmp_path)
    log, deadline = tmp_path / "two" / "metrics.jsonl", time.monotonic() + 120
    while not (log.exists() and log.read_text().count("\n") > 2) and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(run.pid, signal.SIGINT)
    said, _ = run.communicate(timeout=120)
    assert "Stopped and saved at step" in said
    saved = max(int(path.name[5:]) for path in (tmp_path / "two" / "checkpoints").iterdir())
    assert saved >= 3
    assert resume(RunFolder(tmp_path / "two")).state.step == saved


def test_processes_that_cannot_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MASTER_ADDR", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match="start them with torchrun, or unset WORLD_SIZE"):
        team.command(lambda: None)
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UserError, match="2 processes were started on a machine with 1 GPU"):
        team.command(lambda: None)


def test_only_eager_steps_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "processes", lambda: 2)
    assert resolve_execution("auto", torch.device("cuda")) == "eager"
    with pytest.raises(UserError, match="leave it at auto under torchrun"):
        resolve_execution("graph", torch.device("cuda"))
