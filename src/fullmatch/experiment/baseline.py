"""Did the unlabeled images help? The same network on the labels only, on the same test images."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fullmatch.config import ExperimentConfig
from fullmatch.data import Source
from fullmatch.errors import UserError
from fullmatch.evaluation.paired import compare_paired
from fullmatch.experiment.feature_pass import PassOptions
from fullmatch.experiment.identity import check_unchanged
from fullmatch.experiment.leakage import LEAKED
from fullmatch.experiment.presets import labels_only
from fullmatch.experiment.run import Run
from fullmatch.experiment.settings import read_config
from fullmatch.experiment.start import resume, start
from fullmatch.storage.predictions import Predictions
from fullmatch.storage.result import PairedComparison, Verdict
from fullmatch.storage.run_folder import RunFolder


def prepare_baseline(folder: RunFolder, source: Source | None = None) -> Run | None:
    """The labels-only run inside a run: new, or continued; None when it is finished.

    Refuses other pictures or labels than those of the run, which could not be compared.
    """
    inner = RunFolder(folder.baseline)
    if inner.finished:
        return None
    data_hash = folder.read_result().data_hash

    def accept(run: Run) -> None:
        check_unchanged(run.dataset, run.data_hash, data_hash, f"{folder.path} was trained")

    options = PassOptions(folder=folder.feature_cache)  # a frozen body's features are the same
    if not inner.started:
        return start(baseline_config(folder), inner, source, accept, options)
    run = resume(inner, source, options)
    accept(run)
    return run


def baseline_config(folder: RunFolder) -> ExperimentConfig:
    """The settings of a run, for the labels only."""
    config = read_config(folder)
    split = str(folder.split) if folder.split.exists() else None
    # Earlier weights were trained on unlabeled images.
    config = replace(config, model=replace(config.model, start=None))
    return replace(labels_only(config), data=replace(config.data, split=split))


def compare_with_baseline(folder: RunFolder) -> PairedComparison | None:
    """Add to a run's result how it compares with its baseline, image by image."""
    inner = RunFolder(folder.baseline)
    ours, theirs = folder.read_predictions(), inner.read_predictions()
    if ours is None or theirs is None:
        return None
    result = folder.read_result()
    tests = (inner.read_result().test_hash, result.test_hash)
    # Older results do not know which pictures they were measured on.
    differ = None not in tests and tests[0] != tests[1]
    if differ or not np.array_equal(ours.labels, theirs.labels):
        raise UserError(
            f"{folder.path} and {inner.path} were measured on different test images; restore "
            f"those of the first, delete the second, then run: {folder.resume_command}"
        )
    comparison = compare_paired(hits(ours), hits(theirs))
    if start_run := read_config(folder).model.start:  # part of what helped, or did not
        comparison = replace(comparison, start=start_run)
    if any(finding.kind == LEAKED for finding in result.health):
        comparison = replace(comparison, verdict=Verdict.INVALID)
    folder.write_result(replace(result, baseline=comparison))
    return comparison


def hits(predictions: Predictions) -> Tensor:
    return torch.from_numpy(predictions.right).double()
