"""result.json: what a finished run reports about itself, as typed values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fullmatch.storage.json_files import JSON, from_json

FORMAT = 2
UNEVEN = 2.0  # largest over smallest class, above which classes count as uneven
Interval = tuple[float, float]  # the 95 % confidence interval


def mean_recall(recalls: Iterable[float | None]) -> float | None:
    """The balanced accuracy: the mean over the classes that were measured."""
    measured = [recall for recall in recalls if recall is not None]
    return sum(measured) / len(measured) if measured else None


def is_uneven(counts: Sequence[int]) -> bool:
    """Whether the largest class is clearly larger than the smallest one that has any images."""
    present = [count for count in counts if count]
    return bool(present) and max(present) > UNEVEN * min(present)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """How good a model is on labeled images; all fractions in [0, 1]."""

    top1: float
    top5: float | None = None  # None with five classes or fewer
    ece: float  # expected calibration error
    per_class: tuple[float | None, ...] = ()  # recall of each class; None without test images
    balanced_accuracy: float | None = None  # mean of the recalls; older results do not have it
    confusion: tuple[tuple[int, ...], ...] = ()  # rows are true classes, columns predicted ones

    def __post_init__(self) -> None:
        if self.balanced_accuracy is None:
            object.__setattr__(self, "balanced_accuracy", mean_recall(self.per_class))

    @property
    def images(self) -> int:
        return sum(map(sum, self.confusion))

    @property
    def uneven(self) -> bool:
        """Whether some classes have clearly more test images than others."""
        return is_uneven([sum(row) for row in self.confusion])


@dataclass(frozen=True, kw_only=True)
class FinalScores(Scores):
    """Scores at the end of training, and what was measured during it."""

    interval: Interval
    # Benchmarks only, whose test images are looked at during training.
    median_last_20: float | None = None
    best_chosen_on_test: float | None = None


@dataclass(frozen=True, kw_only=True)
class OpenSetScores:
    """How well test images of unknown classes are recognized as unknown; fractions in [0, 1]."""

    images: int  # of unknown classes
    auroc: float  # chance that a known image has a higher score than an unknown one; 1/2 by chance
    # Of a method that predicts "unknown" as one more class: the mean accuracy over all classes and
    # "unknown", and that of "unknown" by itself.
    balanced_accuracy: float | None = None
    unknown_accuracy: float | None = None


class Verdict(StrEnum):
    """What a paired comparison says about the unlabeled images."""

    HELPED = "helped"
    HURT = "hurt"
    UNCLEAR = "made no clear difference"
    INVALID = "cannot be judged by a test set that was trained on"


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """Two classifiers on the same images: the gain in accuracy, and whether it is clear."""

    gain: float
    interval: Interval
    better: int  # images that only this run classifies correctly
    worse: int
    p_value: float  # of a two-sided sign test
    verdict: Verdict
    images: int
    start: str | None = None  # the run whose weights ours started from, and the baseline did not


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """An accuracy with its 95 % interval."""

    accuracy: float
    interval: Interval


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Accuracy by cross-validation on the labels, where there is no test set."""

    accuracy: float
    interval: Interval
    held_out: int  # labels that were held out at least once
    labels: int
    unlabeled: int
    folds: int
    repeats: int
    steps: int  # of each model
    without_start: bool = False  # the models did not start from the earlier run's weights
    baseline: Accuracy
    gain: PairedComparison
    per_class: dict[str, float | None]

    @property
    def not_measured(self) -> list[str]:
        """Classes of which no label could be held out."""
        return [name for name, accuracy in self.per_class.items() if accuracy is None]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A temperature fitted on held-out labels, and what it did to them."""

    temperature: float | None  # None where none could be fitted
    images: int
    ece_before: float | None = None  # expected calibration error
    ece_after: float | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class HealthFinding:
    """Something that went wrong in training, and what to try."""

    kind: str
    message: str
    advice: str

    def sentence(self) -> str:
        return f"{self.message}. Try {self.advice}."


@dataclass(frozen=True, kw_only=True)
class StrategyResult:
    """One strategy for using a pretrained network, measured on held-out labels."""

    name: str
    accuracy: float
    interval: Interval
    seconds: float
    chosen: bool = False
    reason: str = ""  # why it was chosen; older results do not have it

    @property
    def explanation(self) -> str:
        """Why it is used, as a sentence; empty if it is not."""
        return f"Used: {self.name}, {self.reason}." if self.chosen and self.reason else ""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a finished run reports about itself."""

    format: int = FORMAT
    algorithm: dict[str, Any]  # the spec as in config.toml: its name, then its fields
    data: str
    classes: tuple[str, ...]
    labels: int
    labels_by_class: tuple[int, ...] = ()  # older results do not have it
    unlabeled: int | None = None  # includes the labeled images, as in the published protocols
    seed: int
    steps: int
    split_hash: str | None = None
    config_hash: str
    data_hash: str = ""  # shorter in older results
    test_hash: str | None = None
    notes: tuple[str, ...] = ()
    seconds: float
    device: str
    versions: dict[str, str]
    student: FinalScores | None = None
    teacher: FinalScores | None = None  # the averaged model, which is the one to use
    unknown_classes: tuple[str, ...] = ()  # without labels; all other scores leave them out
    open_set: OpenSetScores | None = None  # of the averaged model
    health: tuple[HealthFinding, ...] = ()
    baseline: PairedComparison | None = None  # against the same network on the labels only
    estimate: Estimate | None = None
    estimate_missing: str = ""  # why there is no estimate, where one was tried
    calibration: Calibration | None = None
    strategies: tuple[
        StrategyResult, ...
    ] = ()  # that were compared before training, on held-out labels

    @property
    def algorithm_name(self) -> str:
        return str(self.algorithm["name"])

    @property
    def has_unlabeled(self) -> bool:
        """Whether there are more images than labels; else the labeled ones stand in for them."""
        return self.unlabeled != self.labels

    @property
    def temperature(self) -> float | None:
        return None if self.calibration is None else self.calibration.temperature

    @property
    def uneven(self) -> bool:
        """Whether the classes differ clearly in their labels or test images."""
        return is_uneven(self.labels_by_class) or (self.teacher is not None and self.teacher.uneven)

    @property
    def comparison(self) -> PairedComparison | None:
        """With the labels-only baseline: on test images, or else on held-out labels."""
        if self.baseline is not None or self.estimate is None:
            return self.baseline
        return self.estimate.gain

    @property
    def lacks_estimate(self) -> bool:
        """Whether a finished run still has to be measured by cross-validation."""
        measured = self.teacher or self.estimate or self.estimate_missing
        # A baseline is measured with the run it belongs to, unless it was chosen over others.
        return not measured and (self.algorithm_name != "supervised" or bool(self.strategies))


def parse_result(table: JSON) -> RunResult:
    """A result of this version or of an earlier one; `ValueError` says what is wrong with it."""
    if table.get("format", 1) == 1:
        table = upgrade_format_1(table)
    result = from_json(RunResult, table)
    if not isinstance(result.algorithm.get("name"), str):
        raise ValueError("algorithm.name is missing")
    check_lengths(result)
    return result


def check_lengths(result: RunResult) -> None:
    """Everything that has one entry per class has as many as there are classes."""
    count = len(result.classes)
    for name, scores in (("student", result.student), ("teacher", result.teacher)):
        if scores is None:
            continue
        rows = [len(row) for row in scores.confusion]
        if len(scores.per_class) != count or rows != [count] * count:
            raise ValueError(f"the scores of the {name} do not match the {count} classes")
    if result.labels_by_class and len(result.labels_by_class) != count:
        raise ValueError(f"labels_by_class does not fit {count} classes")


def upgrade_format_1(table: Mapping[str, Any]) -> JSON:
    """The result of fullmatch 0.1 under today's names."""
    new = renamed(table, {"split": "split_hash", "config": "config_hash"})
    new["format"] = FORMAT
    if "labels_only" in new:
        new["baseline"] = upgrade_comparison(new.pop("labels_only"))
    estimate = new.pop("honest", None) or {}
    if not isinstance(estimate, dict):
        raise ValueError("honest is not a table")
    if "accuracy" in estimate:
        estimate = renamed(
            estimate, {"parts": "folds", "anew": "without_start", "labels_only": "baseline"}
        )
        new["estimate"] = estimate | {"gain": upgrade_comparison(estimate.get("gain"))}
    elif "sentence" in estimate:
        new["estimate_missing"] = estimate["sentence"]
    if isinstance(new.get("calibration"), dict):
        new["calibration"] = {"temperature": new.pop("temperature", None)} | new["calibration"]
    elif new.get("temperature") is not None:
        new["calibration"] = {"temperature": new["temperature"], "images": 0}
    if isinstance(new.get("health"), list):
        names = {"words": "message", "knob": "advice"}
        new["health"] = [
            renamed(each, names) if isinstance(each, dict) else each for each in new["health"]
        ]
    return new


def upgrade_comparison(table: Any) -> Any:
    if not isinstance(table, dict):
        return table
    new = renamed(table, {"chance": "p_value"})
    if new.get("verdict") == "cannot be judged by a test that was learned from":
        new["verdict"] = Verdict.INVALID.value
    return new


def renamed(table: Mapping[str, Any], names: Mapping[str, str]) -> JSON:
    return {names.get(key, key): value for key, value in table.items()}
