"""A finished run without a test set: measured by cross-validation, and calibrated with it."""

from dataclasses import replace

from safetensors.torch import load_file

from fullmatch.data import Source
from fullmatch.evaluation.calibration import calibrate
from fullmatch.experiment.cross_validation import HELD_OUT, CrossValidation
from fullmatch.experiment.feature_pass import PassOptions
from fullmatch.experiment.identity import check_unchanged, hash_dataset
from fullmatch.experiment.inputs import (
    RunInputs,
    add_features,
    choose_split,
    load_source,
    prepare_dataset,
)
from fullmatch.experiment.settings import read_config
from fullmatch.storage.result import HealthFinding, RunResult
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.health import TunableSettings, check_confidence

NOTHING_HELD_OUT = (
    "The accuracy is not known: no class has two labels, so none can be held out. Label more "
    "pictures of each class, or add test/CLASS/*."
)


def prepare_estimate(
    folder: RunFolder, source: Source | None = None, *, least_steps: int | None = None
) -> CrossValidation | None:
    """The cross-validation that a finished run still lacks; None where it has a test or is done.

    Run it, then call `store_estimate`; after an interrupt it continues with the next fold.
    """
    result = folder.read_result()
    if not result.lacks_estimate:
        return None
    config = read_config(folder)
    source = load_source(config) if source is None else source
    dataset = prepare_dataset(config, source, choose_split(config, source))
    check_unchanged(dataset, hash_dataset(dataset), result.data_hash, f"{folder.path} was trained")
    inputs = RunInputs(source, None, dataset)
    inputs, _ = add_features(inputs, config, PassOptions(folder=folder.feature_cache))
    return CrossValidation(config, dataset, folder.estimate, least_steps, inputs.features)


def calibrate_compared(folder: RunFolder) -> None:
    """Calibrate a run by the held-out labels on which its strategy was compared with others."""
    result, held_out = folder.read_result(), folder.estimate / HELD_OUT
    chosen = next((each for each in result.strategies if each.chosen), None)
    fitted = result.calibration is not None or result.algorithm_name == "supervised"
    if chosen is None or fitted or not held_out.exists():
        return
    tensors = load_file(held_out)
    calibration = calibrate(tensors["probabilities"], tensors["labels"])
    folder.write_result(replace(result, calibration=calibration))


def store_estimate(folder: RunFolder, validation: CrossValidation) -> RunResult:
    """Add the estimate, the calibration fitted on it, and what it says about overconfidence."""
    result = folder.read_result()
    estimate = validation.estimate
    if estimate is None:
        result = replace(result, estimate_missing=NOTHING_HELD_OUT)
    else:
        held_out = load_file(validation.folder / HELD_OUT)
        result = replace(
            result,
            estimate=estimate,
            calibration=calibrate(held_out["probabilities"], held_out["labels"]),
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
