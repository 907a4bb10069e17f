"""Measured steps per second, and which of them fits a run that is planned."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fullmatch.algorithms import algorithm as spec_of
from fullmatch.config import ExperimentConfig, experiment_config
from fullmatch.errors import UserError
from fullmatch.files.reading import parse_json, read_bounded_text
from fullmatch.reproduce import provenance
from fullmatch.reproduce.entry import LedgerEntry
from fullmatch.reproduce.ledger import Ledger
from fullmatch.reproduce.names import algorithm_name, method_name
from fullmatch.storage.json_files import from_json
from fullmatch.storage.run_folder import read_file

ENGINE = "engine.jsonl"  # beside the ledger's folder: what benchmarks/engine.py measured
APART = "weak view apart"  # in the name of such a benchmark


class StepCost(NamedTuple):
    """What a step computes, apart from its method."""

    labeled: int  # images
    unlabeled: int
    weak_gradient: bool = True
    pseudo_labels: str = "student"
    curriculum: float | None = None


class PlannedCase(NamedTuple):
    """What decides the speed of a planned run."""

    device: str
    model: str
    data: str
    method: str  # as published
    step: StepCost

    @classmethod
    def of(cls, config: ExperimentConfig, device: str) -> "PlannedCase":
        method = method_name(provenance.table_of(config)["algorithm"])
        return cls(device, config.model.name, config.data.name, method, step_cost(config))


@dataclass(frozen=True)
class MeasuredRate:
    """The speed of one case."""

    steps_per_second: float
    device: str
    model: str
    data: str
    method: str
    step: StepCost
    date: str

    def matches(self, case: "PlannedCase") -> tuple[bool, bool, bool, bool]:
        """What is as in a planned run, the most important first: device, step, data, method."""
        same_device = self.device == case.device or (is_cpu(self.device) and is_cpu(case.device))
        return (
            same_device,
            self.step == case.step,
            self.data == case.data,
            self.method == case.method,
        )

    def describe(self, case: "PlannedCase") -> str:
        """Where it was measured, and what differs from the planned run."""
        texts = ("another device", "another kind of step", self.data, self.method)
        pairs = zip(texts, self.matches(case), strict=True)
        different = [text for text, same in pairs if not same]
        nearest = f" (the nearest: {', '.join(different)})" if different else ""
        return f"measured on {self.device}{nearest}"


@dataclass(frozen=True)
class EngineLine:
    """What is used of a line of the engine's measurements."""

    data: str
    algorithm: str
    model: str
    device: str
    steps_per_second: float
    case: str
    date: str
    labeled_images: int
    unlabeled_images: int


def is_cpu(device: str) -> bool:
    return device.startswith("CPU")


def step_cost(config: ExperimentConfig) -> StepCost:
    training, labels = config.training, config.data.labels
    fewer = labels is not None and labels < training.batch and not training.repeat_labels
    return StepCost(
        labels if fewer and labels is not None else training.batch,
        training.unlabeled_batch(config.algorithm.ratio),
        training.weak_gradient,
        training.pseudo_labels,
        training.curriculum,
    )


def measured_rates(ledger: Ledger) -> list[MeasuredRate]:
    """Of the runs in the ledger, and of the benchmarks beside it."""
    engine = ledger.folder.parent / ENGINE
    return [*run_rates(ledger.entries()), *(benchmark_rates(engine) if engine.is_file() else ())]


def run_rates(entries: Iterable[LedgerEntry]) -> Iterator[MeasuredRate]:
    for entry in entries:
        if not entry.steps_per_second:
            continue
        try:
            config = experiment_config(entry.config, spec_of)
        except UserError:
            continue  # it has settings that no longer exist
        yield MeasuredRate(
            entry.steps_per_second,
            entry.device,
            config.model.name,
            entry.data,
            method_name(entry.algorithm),
            step_cost(config),
            entry.date,
        )


def benchmark_rates(path: Path) -> list[MeasuredRate]:
    def read(path: Path) -> list[EngineLine]:
        lines = read_bounded_text(path).splitlines()
        return [from_json(EngineLine, parse_json(line)) for line in lines]

    return [
        MeasuredRate(
            line.steps_per_second,
            line.device,
            line.model,
            line.data,
            algorithm_name(line.algorithm),
            StepCost(line.labeled_images, line.unlabeled_images, APART not in line.case),
            line.date,
        )
        for line in read_file(path, read, "remove it, or measure again")
    ]


def nearest_rate(case: PlannedCase, rates: Sequence[MeasuredRate]) -> MeasuredRate | None:
    """The rate of the same case, or of the nearest one with the same network.

    Of several on the same day the fastest counts, since the others may have shared their device.
    """
    same_network = [rate for rate in rates if rate.model == case.model]
    return max(
        same_network,
        key=lambda rate: (rate.matches(case), rate.date, rate.steps_per_second),
        default=None,
    )
