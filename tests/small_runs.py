"""Runs of a few steps on a few digits, and what is left of them when they are done."""

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
from fullmatch.experiment.run import Run, resume, start
from fullmatch.experiment.settings import resolve
from fullmatch.storage.run_folder import RunFolder

STEPS = 8
TINY = ("training.batch=6", "training.ratio=2", f"training.steps={STEPS}")
# Logs, evaluations and checkpoints that rarely fall on the same step.
AWKWARD = ("training.log_every=3", "training.evaluate_every=4", "training.checkpoint_every=5")


@cache
def digits() -> Source:
    """Digits with only 200 pictures to learn from and 50 to be tested on."""
    source = data.load("digits")
    few, test = torch.arange(200), torch.arange(50)
    assert source.test is not None and source.test_labels is not None
    return replace(
        source,
        images=TensorStore(source.images.read(few)),
        labels=source.labels[few],
        test=TensorStore(source.test.read(test)),
        test_labels=source.test_labels[test],
    )


def config(algorithm: str = "fullmatch", *settings: str, **flags: Any) -> ExperimentConfig:
    return resolve(algorithm=algorithm, assignments=(*TINY, *AWKWARD, *settings), **flags)


def embeddings(folder: Path, classes: int = 10) -> Path:
    """Rows of numbers for the method that wants to know what class names mean."""
    path = folder / "embeddings.npy"
    np.save(path, np.random.default_rng(0).normal(size=(classes, 8)))
    return path


def begin(config: ExperimentConfig, out: Path) -> Run:
    return start(config, RunFolder.planned("small", out), digits())


def again(out: Path) -> Run:
    return resume(RunFolder(out), digits())


def finish(run: Run) -> Run:
    for _ in run.records():
        pass
    return run


def stop_after(run: Run, step: int) -> None:
    """Train to a step and no further, as an interrupt at that moment would."""
    advance = run.trainer.advance

    def watched() -> None:
        advance()
        run.trainer.stop = run.state.step + 1 >= step

    run.trainer.advance = watched
    assert [record.paused for record in run.records()][-1]
    assert run.state.step == step


def abandon_after(run: Run, step: int) -> None:
    """Train to a step and drop everything since the last checkpoint, as a kill would."""
    for record in run.records():
        if record.step >= step:
            return


def remains(out: Path) -> dict[str, Any]:
    """All that a finished run leaves, without its clock times."""
    newest = sorted((out / "checkpoints").glob("step-*"))[-1]
    return {
        "checkpoint": newest.name,
        "state": bits(load_file(newest / "state.safetensors")),
        "model": (out / "model.safetensors").read_bytes(),
        "predictions": (out / "predictions.safetensors").read_bytes(),
        "metrics": timeless((out / "metrics.jsonl").read_text().splitlines()),
        "result": timeless([(out / "result.json").read_text()]),
    }


def bits(state: dict[str, torch.Tensor]) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in state.items()}


def timeless(lines: Iterable[str]) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in lines]
    for record in records:
        del record["seconds"]
    return records
