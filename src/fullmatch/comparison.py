"""Did the unlabeled images help? The same network on the labels alone, on the same test images."""

from dataclasses import replace
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from fullmatch import experiment
from fullmatch.algorithms import Supervised
from fullmatch.data import Source
from fullmatch.paired import paired
from fullmatch.runfolder import RunFolder
from fullmatch.settings import config_of

FOLDER = "labels-only"


def baseline_of(folder: RunFolder, source: Source | None = None) -> experiment.Run | None:
    """The labels-only run beside a run: new, or continued; None when it is finished."""
    path = folder.path / FOLDER
    if (path / "result.json").exists():
        return None
    if (path / "config.toml").exists():
        return experiment.resume(RunFolder(path), source)
    config = config_of(folder)
    split = str(folder.split) if folder.split.exists() else None
    alone = replace(
        config,
        algorithm=Supervised(),
        baseline=False,
        data=replace(config.data, split=split),
        # Earlier weights have seen unlabeled images.
        model=replace(config.model, start=None),
    )
    return experiment.start(alone, RunFolder(path), source)


def compare(folder: RunFolder) -> dict[str, Any] | None:
    """Add to a run's result how it stands to its baseline, image by image."""
    both = [RunFolder(folder.path / FOLDER), folder]
    if not all(each.predictions.exists() for each in both):
        return None
    theirs, ours = (right(each) for each in both)
    found = paired(ours, theirs)
    if start := config_of(folder).model.start:  # what helped, or not, is this too
        found["start"] = start
    folder.write_result(folder.read_result() | {"labels_only": found})
    return found


def right(folder: RunFolder) -> Tensor:
    saved = load_file(folder.predictions)
    return (saved["probabilities"].argmax(dim=1) == saved["labels"]).double()
