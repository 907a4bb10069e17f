"""Did the unlabeled images help? The same network on the labels alone, on the same test images."""

from dataclasses import replace
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from fullmatch.algorithms import Supervised
from fullmatch.config import ExperimentConfig
from fullmatch.data import Source
from fullmatch.errors import UserError
from fullmatch.evaluation.paired import paired
from fullmatch.experiment import run as experiment
from fullmatch.experiment.inputs import refuse_changed
from fullmatch.experiment.leakage import SEEN
from fullmatch.experiment.settings import config_of
from fullmatch.storage.run_folder import RunFolder

FOLDER = "labels-only"


def baseline_of(folder: RunFolder, source: Source | None = None) -> experiment.Run | None:
    """The labels-only run beside a run: new, or continued; None when it is finished.

    Refuses other pictures or labels than those of the run, which would not compare.
    """
    path = folder.path / FOLDER
    if (path / "result.json").exists():
        return None
    known = folder.read_result().get("data_hash", "")

    def accept(run: experiment.Run) -> None:
        refuse_changed(run.dataset, run.data_hash, known, f"{folder.path} was trained")

    if not (path / "config.toml").exists():
        return experiment.start(alone(folder), RunFolder(path), source, accept)
    run = experiment.resume(RunFolder(path), source)
    accept(run)
    return run


def alone(folder: RunFolder) -> ExperimentConfig:
    """The settings of a run, but for the labels alone."""
    config = config_of(folder)
    split = str(folder.split) if folder.split.exists() else None
    return replace(
        config,
        algorithm=Supervised(),
        baseline=False,
        data=replace(config.data, split=split),
        # Earlier weights have seen unlabeled images.
        model=replace(config.model, start=None),
    )


def compare(folder: RunFolder) -> dict[str, Any] | None:
    """Add to a run's result how it stands to its baseline, image by image."""
    both = [RunFolder(folder.path / FOLDER), folder]
    if not all(each.predictions.exists() for each in both):
        return None
    theirs, ours = (load_file(each.predictions) for each in both)
    result = folder.read_result()
    tests = [found.get("test_hash") for found in (both[0].read_result(), result)]
    # Older results do not know which pictures they were measured on.
    other = None not in tests and tests[0] != tests[1]
    if other or not torch.equal(ours["labels"], theirs["labels"]):
        raise UserError(
            f"{folder.path} and {both[0].path} were measured on different test images; put back "
            f"those of the first, delete the second, then: {folder.resume_command}"
        )
    found = paired(right(ours), right(theirs))
    if start := config_of(folder).model.start:  # what helped, or not, is this too
        found["start"] = start
    if any(finding["kind"] == SEEN for finding in result.get("health", [])):
        found["verdict"] = "cannot be judged by a test that was learned from"
    folder.write_result(result | {"labels_only": found})
    return found


def right(saved: dict[str, Tensor]) -> Tensor:
    return (saved["probabilities"].argmax(dim=1) == saved["labels"]).double()
