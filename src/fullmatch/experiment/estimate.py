"""A finished run without a test set: measured by cross-validation, and calibrated with it."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from fullmatch.data import Source
from fullmatch.evaluation.calibration import calibrate
from fullmatch.experiment.cross_validation import (
    DEFAULT_FOLDS,
    HELD_OUT,
    CrossValidation,
    FoldOptions,
)
from fullmatch.experiment.feature_pass import PassOptions
from fullmatch.experiment.identity import check_unchanged, hash_dataset
from fullmatch.experiment.inputs import (
    RunInputs,
    add_features,
    choose_split,
    hide_unknown_classes,
    load_source,
    prepare_dataset,
)
from fullmatch.experiment.settings import read_config
from fullmatch.storage.predictions import read_predictions
from fullmatch.storage.result import HealthFinding, RunResult
from fullmatch.storage.run_folder import RunFolder, read_file
from fullmatch.training.health import TunableSettings, check_confidence

NOTHING_HELD_OUT = (
    "The accuracy is not known: no class has two labels, so none can be held out. Label more "
    "pictures of each class, or add test/CLASS/*."
)


def prepare_estimate(
    folder: RunFolder, source: Source | None = None, *, folds: FoldOptions = DEFAULT_FOLDS
) -> CrossValidation | None:
    """The cross-validation that a finished run still lacks; None where it has a test or is done.

    Run it, then call `store_estimate`; after an interrupt it continues with the next fold.
    """
    if not folder.read_result().lacks_estimate:
        return None
    return prepare_validation(folder, source, folds)


def prepare_validation(
    folder: RunFolder, source: Source | None, folds: FoldOptions
) -> CrossValidation:
    """The cross-validation of a finished run, whether or not it has a test set."""
    config, data_hash = read_config(folder), folder.read_result().data_hash
    source = load_source(config) if source is None else hide_unknown_classes(config, source)
    dataset = prepare_dataset(config, source, choose_split(config, source))
    check_unchanged(dataset, hash_dataset(dataset), data_hash, f"{folder.path} was trained")
    inputs = RunInputs(source, None, dataset)
    inputs, _ = add_features(inputs, config, PassOptions(folder=folder.feature_cache))
    return CrossValidation(config, dataset, folder.estimate, folds, inputs.features)


def calibrate_compared(folder: RunFolder) -> None:
    """Calibrate a run by the held-out labels on which its strategy was compared with others."""
    result, held_out = folder.read_result(), folder.estimate / HELD_OUT
    chosen = next((each for each in result.strategies if each.chosen), None)
    fitted = result.calibration is not None or result.algorithm_name == "supervised"
    if chosen is None or fitted or not held_out.exists():
        return
    calibration = calibrate(*read_held_out(held_out, folder))
    folder.write_result(replace(result, calibration=calibration))


def read_held_out(path: Path, folder: RunFolder) -> tuple[Tensor, Tensor]:
    """Probabilities and labels of the held-out pictures."""
    advice = f"delete the folder {path.parent}, then run: {folder.resume_command}"
    predictions = read_file(path, read_predictions, advice)
    return torch.from_numpy(predictions.probabilities), torch.from_numpy(predictions.labels)


def store_estimate(folder: RunFolder, validation: CrossValidation) -> RunResult:
    """Add the estimate, the calibration fitted on it, and what it says about overconfidence."""
    result = folder.read_result()
    estimate = validation.estimate
    if estimate is None:
        result = replace(result, estimate_missing=NOTHING_HELD_OUT)
    else:
        result = replace(
            result,
            estimate=estimate,
            calibration=calibrate(*read_held_out(validation.folder / HELD_OUT, folder)),
            health=(*result.health, *find_overconfidence(folder, result, estimate.accuracy)),
        )
    folder.write_result(result)
    return result


def find_overconfidence(
    folder: RunFolder, result: RunResult, accuracy: float
) -> tuple[HealthFinding, ...]:
    config = read_config(folder)
    optimizer = config.optimizer
    settings = TunableSettings.of(config.algorithm, optimizer.rate, optimizer.clip)
    finding = check_confidence(folder.read_records(), accuracy, settings)
    return (finding,) if finding and result.has_unlabeled else ()
