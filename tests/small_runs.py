"""Runs of a few steps on a few digits, and the files they write."""

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from fullmatch import data
from fullmatch.config import ExperimentConfig
from fullmatch.data import Source, TensorStore
from fullmatch.experiment.run import Run
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import resume, start
from fullmatch.storage.run_folder import RunFolder

STEPS = 8
TINY = ("training.batch=6", "training.ratio=2", f"training.steps={STEPS}")
# Logs, evaluations and checkpoints that rarely fall on the same step.
AWKWARD = ("training.log_every=3", "training.evaluate_every=4", "training.checkpoint_every=5")


@cache
def digits() -> Source:
    """Digits with only 200 pictures for training and 50 for the test."""
    source = data.load("digits")
    few, test = torch.arange(200), torch.arange(50)
    assert source.test is not None
    assert source.test_labels is not None
    return replace(
        source,
        images=TensorStore(source.images.read(few)),
        labels=source.labels[few],
        test=TensorStore(source.test.read(test)),
        test_labels=source.test_labels[test],
    )


def config(algorithm: str = "fullmatch", *settings: str, **flags: Any) -> ExperimentConfig:
    return resolve(algorithm=algorithm, assignments=(*TINY, *AWKWARD, *settings), **flags)


def write_embeddings(folder: Path, classes: int = 10) -> Path:
    """A file of random class embeddings, for the method that needs one."""
    path = folder / "embeddings.npy"
    np.save(path, np.random.default_rng(0).normal(size=(classes, 8)))
    return path


def begin(config: ExperimentConfig, out: Path, source: Source | None = None) -> Run:
    return start(config, RunFolder.planned("small", out), source or digits())


def resume_run(out: Path) -> Run:
    return resume(RunFolder(out), digits())


def finish(run: Run) -> Run:
    for _ in run.records():
        pass
    return run


def stop_after(run: Run, step: int) -> None:
    """Train up to a step, as if interrupted there."""
    advance = run.trainer.advance

    def watched() -> None:
        advance()
        run.trainer.stop = run.state.step + 1 >= step

    run.trainer.advance = watched
    assert [record.paused for record in run.records()][-1]
    assert run.state.step == step


def abandon_after(run: Run, step: int) -> None:
    """Train up to a step, and lose all since the last checkpoint, as a killed process does."""
    for record in run.records():
        if record.step >= step:
            return


def read_outputs(out: Path) -> dict[str, Any]:
    """All that a finished run has written, without its times."""
    newest = sorted((out / "checkpoints").glob("step-*"))[-1]
    return {
        "checkpoint": newest.name,
        "state": tensor_bytes(load_file(newest / "state.safetensors")),
        "model": (out / "model.safetensors").read_bytes(),
        "predictions": (out / "predictions.safetensors").read_bytes(),
        "metrics": without_seconds((out / "metrics.jsonl").read_text().splitlines()),
        "result": without_seconds([(out / "result.json").read_text()]),
    }


def tensor_bytes(state: dict[str, torch.Tensor]) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in state.items()}


def without_seconds(lines: Iterable[str]) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in lines]
    for record in records:
        del record["seconds"]
    return records
