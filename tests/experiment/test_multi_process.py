"""Several processes train as one: the same numbers, one writes, any number resumes."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.data import SemiDataset
from fullmatch.errors import UserError
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.inputs import choose_split
from fullmatch.experiment.start import start
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.execution import resolve_execution
from tests.frozen_runs import frozen_config, tiny_model
from tests.own_pictures import clean_folder
from tests.small_runs import begin, config, digits, finish, resume_run, stop_after
from tests.two_processes import in_processes, in_two_processes

SHORT = "--set training.batch=6 --set training.ratio=2 --set training.log_every=2"
PERFORMANCE = (Path(__file__).parents[2] / "docs" / "performance.md").read_text(encoding="utf-8")
# Losses of each image, of means over the batch, and of pairs of images; memory of every kind; a
# step in two parts, and a self-supervised start. benchmarks/several_processes.py has them all.
CASES = {
    "fullmatch": ("training.accumulate=2",),
    "full-freematch": (),
    "full-comatch": ("algorithm.bank=40",),
    "mixmatch": (),
    "flexmatch": ("training.self_supervised=0.5",),
}
STEPS = 6


def launch(
    arguments: str, place: Path, restarts: int = 0, **environment: str
) -> "subprocess.Popen[str]":
    """`torchrun` with two processes on this machine, in a session that can be signaled at once."""
    run = f"-m torch.distributed.run --standalone --nproc-per-node 2 --max-restarts {restarts}"
    return subprocess.Popen(
        [sys.executable, *run.split(), "-m", "fullmatch", *arguments.split()],
        cwd=place,
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def keep_float32(module: nn.Module) -> None:
    for name, buffer in module.named_buffers(recurse=False):
        if buffer.is_floating_point():
            setattr(module, name, buffer.float())


def states() -> dict[str, dict[str, Tensor]]:
    """The state of some algorithms after some steps, and their metrics.

    In float64, so that rounding does not decide on which side of 0 an activation is.
    """
    torch.set_default_dtype(torch.float64)
    tensors = {}
    for name, settings in CASES.items():
        chosen = config(name, "training.batch=8", f"training.steps={STEPS}", *settings)
        split = choose_split(chosen, digits())
        run = Assembly(chosen, SemiDataset.from_source(digits(), split))
        run.state.algorithm.apply(keep_float32)
        run.state.train()
        for _ in range(STEPS):
            run.trainer.take_step()
        metrics = {f"metric {key}": value for key, value in run.state.totals.read().items()}
        tensors[name] = run.state.state_dict() | {k: torch.tensor(v) for k, v in metrics.items()}
        del tensors[name]["totals"]
    return tensors


def test_two_processes_do_what_one_does(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (one,) = in_processes(1, states, tmp_path / "one")
    for other in in_two_processes(states, tmp_path):
        for name in CASES:
            assert one[name].keys() == other[name].keys()
            for key, tensor in one[name].items():
                difference = (tensor.double() - other[name][key].double()).abs().max()
                assert difference < 1e-5, f"{name}: {key}"


def train_to(step: int, out: str) -> None:
    run = resume_run(Path(out))
    if step < run.config.training.steps:
        stop_after(run, step)
    else:
        finish(run)


def test_any_number_of_processes_resumes(tmp_path: Path) -> None:
    """One, two, four and one again draw the same images, and end where one process does."""
    chosen = config("flexmatch", "training.batch=8", "training.steps=32", "training.log_every=4")
    stop_after(begin(chosen, tmp_path / "run"), 8)
    for count, step in ((2, 16), (4, 24)):
        (tmp_path / str(count)).mkdir()
        in_processes(count, train_to, tmp_path / str(count), step, str(tmp_path / "run"))
    resumed = finish(resume_run(tmp_path / "run"))
    straight = finish(begin(chosen, tmp_path / "straight"))
    assert resumed.folder.read_records()[-1].step == 32
    ours, theirs = resumed.state.state_dict(), straight.state.state_dict()
    memory = "algorithm.labeler.weighting.last_confident"
    assert torch.equal(ours[memory], theirs[memory])
    # Rounding differs, and now and then decides on which side of 0 an activation is.
    first, second = resumed.folder.read_records(), straight.folder.read_records()
    losses = [[record.metrics["loss"] for record in records] for records in (first, second)]
    assert losses[0] == pytest.approx(losses[1], abs=0.1)


def train_frozen(photos: str, out: str) -> dict[str, Tensor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fullmatch.experiment.inputs.load_frozen_model", tiny_model)
        run = finish(start(frozen_config(Path(photos)), RunFolder(Path(out))))
    return run.state.state_dict()


def test_a_frozen_body_is_shared(tmp_path: Path) -> None:
    """Features are computed once; the head ends where one process brings it."""
    photos = clean_folder(tmp_path / "photos", labels=5, unlabeled=6, test=4, size=72)
    one = train_frozen(str(photos), str(tmp_path / "one"))
    both = in_two_processes(train_frozen, tmp_path, str(photos), str(tmp_path / "two"))
    for other in both:
        for name in one.keys() - {"totals"}:
            torch.testing.assert_close(one[name], other[name], rtol=1e-4, atol=1e-5, msg=name)
    results = [RunFolder(tmp_path / name).read_result() for name in ("one", "two")]
    assert results[0].teacher is not None
    assert results[1].teacher is not None
    assert results[0].teacher.top1 == results[1].teacher.top1


def test_only_the_first_process_writes_and_prints(tmp_path: Path) -> None:
    (documented,) = re.findall(r"^torchrun .* -m fullmatch (.*)$", PERFORMANCE, re.MULTILINE)
    run = launch(f"{documented} {SHORT} --steps 4 --baseline --out two", tmp_path)
    output, _ = run.communicate(timeout=240)
    assert run.returncode == 0, output
    assert output.count("runs on 2 x CPU") == 2  # the run, and its baseline
    assert output.count("Accuracy is that of the averaged model") == 1
    assert "process 1" not in output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["two"]


def test_an_error_ends_all_processes(tmp_path: Path) -> None:
    run = launch(f"train digits {SHORT} --steps 4 --set training.batch=5", tmp_path)
    output, _ = run.communicate(timeout=240)
    assert run.returncode != 0
    message = (
        "fullmatch: 2 processes cannot share 5 labeled and 10 unlabeled images per step evenly; "
        "1 or 5 can: start as many, or change training.batch"
    )
    assert output.count(message) == 1
    assert "process 1: " not in output
    assert not list(tmp_path.iterdir())


def wait_for_steps(log: Path, steps: int) -> None:
    deadline = time.monotonic() + 240
    while not (log.exists() and log.read_text().count("\n") >= steps):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in text.split()]


def test_a_signal_saves_and_one_process_resumes(tmp_path: Path) -> None:
    """As SLURM sends it, to every process of the job."""
    run = launch("train digits --steps 100000 --set training.log_every=1 --out two", tmp_path)
    wait_for_steps(tmp_path / "two" / "metrics.jsonl", 2)
    for worker in children(run.pid):
        os.kill(worker, signal.SIGUSR1)
    output, _ = run.communicate(timeout=240)
    assert output.count("Stopped and saved at step") == 1
    assert "fullmatch resume two" in output
    saved = max(int(path.name[5:]) for path in (tmp_path / "two" / "checkpoints").iterdir())
    assert saved % 8 == 0
    assert saved > 0
    assert str(saved) in output


def test_a_killed_process_is_started_again(tmp_path: Path) -> None:
    settings = "--steps 60 --set training.checkpoint_every=7 --set training.log_every=1"
    command = f"train digits --labels 40 {SHORT} {settings} --out"
    run = launch(f"{command} killed", tmp_path, restarts=3)
    wait_for_steps(tmp_path / "killed" / "metrics.jsonl", 10)
    os.kill(children(run.pid)[1], signal.SIGKILL)
    output, _ = run.communicate(timeout=400)
    assert run.returncode == 0, output
    assert re.search(r"resumed at step \d", output)
    calm = launch(f"{command} calm", tmp_path)
    assert calm.wait(400) == 0
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("killed", "calm")]
    assert models[0] == models[1]


def test_a_restart_needs_the_name_of_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    from fullmatch.api.starting import find_restarted

    assert find_restarted(None) is None
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
    with pytest.raises(UserError, match="name the run folder with --out"):
        find_restarted(None)


def test_steps_that_are_shared_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    assert resolve_execution("auto", torch.device("cuda")) == "eager"
    with pytest.raises(UserError, match="leave it at auto"):
        resolve_execution("graph", torch.device("cuda"))
