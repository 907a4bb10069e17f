"""Whether the numbers of a result are possible: fractions, counts, and one entry per class."""

import dataclasses
from typing import Any

from fullmatch.storage.json_files import WrongValue
from fullmatch.storage.predictions import Predictions
from fullmatch.storage.result import PairedComparison, RunResult

ROUNDING = 1e-6
FRACTION, DIFFERENCE = (-ROUNDING, 1 + ROUNDING), (-1 - ROUNDING, 1 + ROUNDING)
COUNT = (0, 2**53)  # beyond it, floats skip integers
# The smallest and the largest value of each field, wherever it stands.
LIMITS = {
    **dict.fromkeys(("top1", "top5", "ece", "per_class", "balanced_accuracy"), FRACTION),
    **dict.fromkeys(("median_last_20", "best_chosen_on_test", "auroc"), FRACTION),
    **dict.fromkeys(("accuracy", "unknown_accuracy", "p_value", "interval"), FRACTION),
    **dict.fromkeys(("ece_before", "ece_after"), FRACTION),
    **dict.fromkeys(("confusion", "images", "better", "worse", "held_out", "folds"), COUNT),
    **dict.fromkeys(("repeats", "steps", "labels", "labels_by_class", "unlabeled"), COUNT),
    "gain": DIFFERENCE,
    "seconds": (0, 1e12),
    "temperature": (1e-6, 1e6),
}


def check_result(result: RunResult) -> RunResult:
    """The result; `WrongValue` names the first number that cannot be."""
    if not isinstance(result.algorithm.get("name"), str):
        raise WrongValue("algorithm.name is missing")
    if len(result.classes) < 2 or len(set(result.classes)) < len(result.classes):
        raise WrongValue("classes are not two or more different names")
    check_ranges(result, "")
    return result


def check_ranges(value: Any, where: str) -> None:
    """Follow a result down to its numbers."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            part = getattr(value, field.name)
            place = f"{where}.{field.name}" if where else field.name
            if field.name == "interval":
                low, high = part
                if low > high:
                    raise WrongValue(f"{place} is not in order")
                limits = DIFFERENCE if isinstance(value, PairedComparison) else FRACTION
                check_numbers(part, limits, place)
            elif field.name in LIMITS and not dataclasses.is_dataclass(part):
                check_numbers(part, LIMITS[field.name], place)
            else:
                check_ranges(part, place)
    elif isinstance(value, tuple):
        for part in value:
            check_ranges(part, where)


def check_numbers(value: Any, limits: tuple[float, float], where: str) -> None:
    if isinstance(value, dict | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            check_numbers(part, limits, where)
    elif value is not None and not limits[0] <= value <= limits[1]:
        low, high = (f"{round(limit, 3):g}" for limit in limits)
        raise WrongValue(f"{where} is {value!r}, not between {low} and {high}")


def check_predictions(predictions: Predictions, result: RunResult) -> None:
    """`ValueError` where saved predictions are not those that a result is about."""
    count = len(result.classes)
    if predictions.probabilities.shape[1] != count:
        raise ValueError(
            f"it is about {predictions.probabilities.shape[1]} classes, result.json about {count}"
        )
    if result.teacher is None:
        raise ValueError("result.json has no scores on test images")
    counted = int((predictions.labels >= 0).sum())
    if result.teacher.confusion and counted != result.teacher.images:
        raise ValueError(
            f"it is about {counted} labeled images, result.json about {result.teacher.images}"
        )
