"""Strategies to use a frozen body: each is measured on held-out labels, and the best is used."""

import shutil
import time
from dataclasses import dataclass, replace

from fullmatch.config import ExperimentConfig
from fullmatch.experiment.cross_validation import CrossValidation
from fullmatch.experiment.inputs import RunInputs
from fullmatch.experiment.presets import labels_only, with_steps
from fullmatch.storage.result import Accuracy, StrategyResult
from fullmatch.storage.run_folder import RunFolder

LABELS_ONLY = "labels only"


@dataclass(frozen=True)
class Strategy:
    """A name that users see, and the settings behind it."""

    name: str
    config: ExperimentConfig


def list_strategies(config: ExperimentConfig) -> list[Strategy]:
    """Strategies besides labels only, the simplest first: propagated labels, then the algorithm."""
    fixed = replace(config.optimizer, rate=0.0)  # the head is fitted, and stays as it is
    propagated = replace(with_steps(config, 1), optimizer=fixed)
    return [
        Strategy("propagated labels", propagated),
        Strategy("propagated labels, then training", config),
    ]


def choose_strategy(
    config: ExperimentConfig, inputs: RunInputs, folder: RunFolder
) -> tuple[ExperimentConfig, tuple[StrategyResult, ...]]:
    """The settings to train with, and how all strategies compared on the same held-out labels.

    Ties go to the simpler strategy, but a semi-supervised one goes before labels only: with few
    held-out labels a tie is common, and unlabeled pictures help more often than not.
    """
    baseline: Accuracy | None = None
    results: list[StrategyResult] = []
    best: tuple[float, Strategy, CrossValidation] | None = None
    for number, strategy in enumerate(list_strategies(config)):
        started = time.monotonic()
        place = folder.path / f"strategy-{number}"
        validation = CrossValidation(
            strategy.config, inputs.dataset, place, features=inputs.features
        )
        for _ in validation.run():
            pass
        estimate = validation.estimate
        if estimate is None:  # no label can be held out
            shutil.rmtree(place, ignore_errors=True)
            return list_strategies(config)[0].config, ()
        baseline = estimate.baseline
        seconds = round(time.monotonic() - started, 1)
        results.append(
            StrategyResult(
                name=strategy.name,
                accuracy=estimate.accuracy,
                interval=estimate.interval,
                seconds=seconds,
            )
        )
        if best is None or estimate.accuracy > best[0]:
            best = (estimate.accuracy, strategy, validation)
    assert best is not None and baseline is not None
    keep_folds(folder, best[2], len(results))
    chosen, chosen_config = best[1].name, best[1].config
    if baseline.accuracy > best[0]:
        chosen, chosen_config = LABELS_ONLY, labels_only(config)
    first = StrategyResult(
        name=LABELS_ONLY, accuracy=baseline.accuracy, interval=baseline.interval, seconds=0.0
    )
    strategies = tuple(
        replace(strategy, chosen=strategy.name == chosen) for strategy in (first, *results)
    )
    return chosen_config, strategies


def keep_folds(folder: RunFolder, validation: CrossValidation, count: int) -> None:
    """The chosen strategy's folds become the run's estimate; the others are deleted."""
    if not folder.estimate.exists():
        validation.folder.rename(folder.estimate)
    for number in range(count):
        shutil.rmtree(folder.path / f"strategy-{number}", ignore_errors=True)
