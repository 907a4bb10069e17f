"""Kills, interrupts and a second process, tested with real processes."""

import json
import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from fullmatch.cli import main
from fullmatch.storage.checkpoints import complete_checkpoints, load_checkpoint
from tests.processes import fullmatch, wait_until
from tests.small_runs import digits, read_outputs

SMALL = (
    *("train", "digits", "--labels", "20", "--algorithm", "fullflex", "--seed", "3"),
    *("--set", "training.batch=4", "--set", "training.ratio=2", "--set", "training.log_every=3"),
)
SHORT = (*SMALL, "--steps", "25", "--set", "training.checkpoint_every=2")
LONG = (*SMALL, "--steps", "1000000", "--set", "training.checkpoint_every=5")


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("straight") / "run"
    main([*SHORT, "--out", str(out)])
    return out


@pytest.mark.parametrize("disk", [0.0, 0.01], ids=["fast disk", "slow disk"])
def test_kills_at_any_moment_do_not_change_the_result(
    disk: float, straight: Path, tmp_path: Path
) -> None:
    """On the slow disk most of the time is spent saving, so most kills interrupt that."""
    out, output = tmp_path / "run", tmp_path / "output"
    moments = random.Random(str(disk))
    kills = 0
    argv: tuple[object, ...] = (*SHORT, "--out", out)
    while kills < 10:
        with fullmatch(*argv, output=output, disk=disk) as process:
            before = frozenset((out / "checkpoints").glob("*"))
            wait_until(lambda: set((out / "checkpoints").glob("*")) - before, process)  # noqa: B023
            process.join(moments.uniform(0, 0.05))
            if not process.is_alive():
                break  # it finished between two kills
            process.kill()
            kills += 1
        argv = ("resume", out)
    assert kills >= 5
    main(["resume", str(out)])
    assert read_outputs(out) == read_outputs(straight)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_saves_and_shows_how_to_resume(
    number: signal.Signals, straight: Path, tmp_path: Path
) -> None:
    out, output = tmp_path / "my run", tmp_path / "output"
    argv = (*SHORT, "--set", "training.checkpoint_every=1000", "--out", out)
    with fullmatch(*argv, output=output) as process:
        wait_until((out / "metrics.jsonl").exists, process)
        os.kill(process.pid or 0, number)
        process.join(60)
    assert process.exitcode == 130
    first, last = complete_checkpoints(out / "checkpoints")
    step = int(last.name.removeprefix("step-"))
    assert f"Stopped and saved at step {step}." in output.read_text()
    assert f"Resume with:\n  fullmatch resume '{out}'\n" in output.read_text()
    assert first.name == "step-000000000"
    assert step > 0
    main(["resume", str(out)])
    resumed, expected = read_outputs(out), read_outputs(straight)
    assert resumed["state"] == expected["state"]
    assert resumed["metrics"] == expected["metrics"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_estimate_is_resumed(
    number: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, out, output = tmp_path / "own.npz", tmp_path / "my run", tmp_path / "output"
    source = digits()
    labels = torch.where(torch.arange(200) < 40, source.labels, -1)
    np.savez(own, train_x=source.images.read(torch.arange(200))[:, 0], train_y=labels)
    with fullmatch("train", own, "--steps", "3", "--out", out, output=output) as process:
        wait_until((out / "estimate" / "0-all.safetensors").exists, process)
        os.kill(process.pid or 0, number)
        process.join(60)
    assert process.exitcode == 130
    text = output.read_text()
    assert "The model is trained, and the finished folds of the estimate are saved." in text
    assert text.rstrip().endswith(f"Resume with:\n  fullmatch resume '{out}'")
    fold = out / "estimate" / "0-all.safetensors"
    before = fold.stat()
    main(["resume", str(out)])
    text = capsys.readouterr().out
    assert "finished already" not in text
    assert "its accuracy is not estimated yet" in text
    after = fold.stat()
    # It was not written again; reading it may have changed its access time.
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert json.loads((out / "result.json").read_text())["estimate"]["held_out"] > 0
    main(["resume", str(out)])
    assert "is finished already" in capsys.readouterr().out


def test_a_second_interrupt_stops_at_once(tmp_path: Path) -> None:
    out, output = tmp_path / "run", tmp_path / "output"
    saved = out / "checkpoints"
    with fullmatch(*LONG, "--out", out, output=output, disk=0.5) as process:
        wait_until(lambda: list(saved.glob(".step-000000005*")), process)
        os.kill(process.pid or 0, signal.SIGINT)
        time.sleep(0.1)  # it is still saving
        assert process.is_alive()
        os.kill(process.pid or 0, signal.SIGINT)
        process.join(1.0)
    assert process.exitcode == 130
    (remaining,) = saved.iterdir()
    assert load_checkpoint(remaining).facts.step == 0


def test_a_second_process_is_rejected_and_harmless(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, output = tmp_path / "run", tmp_path / "output"
    with fullmatch(*LONG, "--out", out, output=output) as process:
        wait_until((out / "checkpoints" / "step-000000005").exists, process)
        wait_until(lambda: (out / "metrics.jsonl").stat().st_size > 1000, process)
        with pytest.raises(SystemExit, match="2"):
            main(["resume", str(out)])
        lines = (out / "metrics.jsonl").read_text().splitlines()
    assert capsys.readouterr().err.count("another process is training") == 1
    steps = [int(line.split()[1].rstrip(",")) for line in lines if line.endswith("}")]
    assert steps == list(range(3, 3 + 3 * len(steps), 3))
