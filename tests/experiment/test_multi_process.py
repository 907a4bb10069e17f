"""Several processes train as one: same state in each, only one writes, any number resumes."""

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
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.inputs import choose_split
from fullmatch.experiment.multi_process import run_in_first_process
from fullmatch.experiment.start import resume
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.execution import resolve_execution
from tests.small_runs import config, digits, write_embeddings
from tests.two_processes import in_two_processes

SHORT = "--set training.batch=6 --set training.ratio=2 --set training.log_every=2"
PERFORMANCE = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")


def launch(arguments: str, place: Path) -> "subprocess.Popen[str]":
    """`torchrun` with two processes on this machine, in a session that can be signaled at once."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return subprocess.Popen(
        [*run, "-m", "fullmatch", *arguments.split()],
        cwd=place,
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def states(place: str) -> dict[str, dict[str, Tensor]]:
    """The state of every algorithm after three steps."""
    tensors = {}
    for name in names():
        semco = [f"algorithm.embeddings={place}/embeddings.npy"] if name.endswith("semco") else []
        chosen = config(name, *semco)
        split = choose_split(chosen, digits())
        run = Assembly(chosen, SemiDataset.from_source(digits(), split))
        run.state.train()
        for _ in range(3):
            run.trainer.take_step()
        tensors[name] = run.state.state_dict()
    return tensors


def test_every_algorithm_is_in_the_same_state_in_each_process(tmp_path: Path) -> None:
    write_embeddings(tmp_path)
    first, second = in_two_processes(states, tmp_path, str(tmp_path))
    for name in names():
        for key, tensor in first[name].items():
            if key == "totals":
                assert not torch.equal(tensor, second[name][key])  # each had other images
            else:
                assert torch.equal(tensor, second[name][key]), f"{name}: {key}"


def test_only_the_first_process_writes_and_prints(tmp_path: Path) -> None:
    (documented,) = re.findall(r"^torchrun .* -m fullmatch (.*)$", PERFORMANCE, re.MULTILINE)
    run = launch(f"{documented} {SHORT} --steps 4 --baseline --out two", tmp_path)
    output, _ = run.communicate(timeout=240)
    assert run.returncode == 0, output
    assert output.count("runs on 2 x CPU") == 2  # the run, and its baseline
    assert output.count("Accuracy is that of the averaged model") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["two"]


def test_an_error_ends_all_processes(tmp_path: Path) -> None:
    run = launch(f"train digits {SHORT} --steps 4 --set training.batch=5", tmp_path)
    output, _ = run.communicate(timeout=240)
    assert run.returncode != 0
    message = "fullmatch: 2 processes cannot share 5 labeled and 10 unlabeled images per step"
    assert message in output
    assert not list(tmp_path.iterdir())


def test_an_interrupt_saves_and_one_process_resumes(tmp_path: Path) -> None:
    run = launch("train digits --steps 100000 --set training.log_every=1 --out two", tmp_path)
    log, deadline = tmp_path / "two" / "metrics.jsonl", time.monotonic() + 120
    while not (log.exists() and log.read_text().count("\n") > 2) and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(run.pid, signal.SIGINT)
    output, _ = run.communicate(timeout=120)
    assert "Stopped and saved at step" in output
    saved = max(int(path.name[5:]) for path in (tmp_path / "two" / "checkpoints").iterdir())
    assert saved >= 3
    assert resume(RunFolder(tmp_path / "two")).state.step == saved


def test_processes_that_cannot_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MASTER_ADDR", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match="start them with torchrun, or unset WORLD_SIZE"):
        run_in_first_process(lambda: None)
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UserError, match="2 processes were started on a machine with 1 GPU"):
        run_in_first_process(lambda: None)


def test_only_eager_steps_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "processes", lambda: 2)
    assert resolve_execution("auto", torch.device("cuda")) == "eager"
    with pytest.raises(UserError, match="leave it at auto under torchrun"):
        resolve_execution("graph", torch.device("cuda"))
