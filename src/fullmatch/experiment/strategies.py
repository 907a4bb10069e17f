"""Strategies to use a pretrained network: each is measured on held-out labels, the best is used."""

import math
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fullmatch.config import ExperimentConfig
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.cross_validation import DEFAULT_FOLDS, CrossValidation, FoldOptions
from fullmatch.experiment.inputs import RunInputs
from fullmatch.experiment.machine import choose_device
from fullmatch.experiment.plan_types import Strategy
from fullmatch.experiment.presets import labels_only, with_steps
from fullmatch.experiment.pretrained_plan import tuned_config
from fullmatch.storage.result import Accuracy, StrategyResult
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.stopping import TimeLimit

LABELS_ONLY = "labels only"
TUNED_STEPS = (100, 400)  # fewer are not worth it, more change little
UNTIMED_STEPS, TIMED_STEPS = 6, 4  # the first ones also record the step
TUNED_SHARE = 0.7  # of the time that is left; measuring and saving take the rest
CPU_MINUTES = 15  # left for tuning on a CPU, or a step is not even timed
SHORTER = 6  # a network from scratch trains this many times longer than to be compared


@dataclass(frozen=True)
class StrategyChooser:
    """Compares strategies as far as the time allows, the fastest first.

    Ties go to the simpler strategy, but a semi-supervised one goes before labels only: with few
    held-out labels a tie is common, and unlabeled pictures help more often than not.
    """

    limit: TimeLimit = field(default_factory=lambda: TimeLimit(float("inf")))
    alternatives: tuple[Strategy, ...] = ()  # besides those of a pretrained network
    tune: bool = True  # also train the whole network, where there is time
    folds: FoldOptions = DEFAULT_FOLDS
    report: Callable[[str], None] = lambda sentence: None

    def __call__(
        self, config: ExperimentConfig, inputs: RunInputs, folder: RunFolder
    ) -> tuple[ExperimentConfig, tuple[StrategyResult, ...]]:
        """The settings to train with, and how all strategies compared on the same labels."""
        comparison = Comparison(inputs, folder.path)
        heads = list_strategies(config)
        for strategy in heads:
            comparison.add(strategy, self.folds)
            if not comparison.results:  # no label can be held out
                comparison.delete()
                return heads[0].config, ()
        try:
            for strategy, folds in self.slow_strategies(config, inputs):
                self.report(
                    f"{comparison.describe_best()}; trying {strategy.name} (Ctrl-C ends here, "
                    "and keeps the best so far)"
                )
                if not comparison.add(strategy, folds, self.limit.seconds_left - strategy.seconds):
                    self.report(f"{strategy.name} is left out: it does not fit into the time")
        except KeyboardInterrupt:
            self.report(f"stopped: {comparison.describe_best()}")
        return comparison.finish(config, folder)

    def slow_strategies(
        self, config: ExperimentConfig, inputs: RunInputs
    ) -> Iterator[tuple[Strategy, FoldOptions]]:
        """Strategies that take minutes, with how their labels are held out."""
        for strategy in self.alternatives:
            chosen = with_data_of(strategy.config, config)
            yield replace(strategy, config=chosen), replace(self.folds, shorter=SHORTER)
        steps = self.affordable_steps(config, inputs) if self.tune else None
        if steps is not None:
            tuned = tuned_config(config, steps, choose_device())
            seconds = TUNED_SHARE * self.limit.seconds_left / self.count_models(config, inputs)
            yield Strategy("tuned network", tuned, seconds), self.folds

    def count_models(self, config: ExperimentConfig, inputs: RunInputs) -> int:
        """Of a strategy: those of the folds, and the final one."""
        return CrossValidation(config, inputs.dataset, Path(), self.folds).count + 1

    def affordable_steps(self, config: ExperimentConfig, inputs: RunInputs) -> int | None:
        """Steps of tuning that fit the time, in all folds and at the end; None: too few do."""
        least, most = TUNED_STEPS
        device, seconds_left = choose_device(), self.limit.seconds_left
        if device.type == "cpu" and seconds_left < 60 * CPU_MINUTES:
            return None
        trial = tuned_config(config, least, device)
        cost = measure_cost(trial, inputs)
        models = self.count_models(config, inputs)
        steps = int(min(most, (TUNED_SHARE * seconds_left / models - cost.start) / cost.step))
        if steps >= least:
            return steps
        minutes = models * (cost.start + least * cost.step) / TUNED_SHARE / 60
        self.report(
            f"training the whole network would take about {minutes:.0f} min more: use a higher "
            "--minutes, or a GPU"
        )
        return None


class Comparison:
    """Strategies that were measured so far; the folds of each are in a folder of their own."""

    def __init__(self, inputs: RunInputs, place: Path) -> None:
        self.inputs, self.place = inputs, place
        self.baseline: Accuracy | None = None
        self.results: list[StrategyResult] = []
        self.strategies: list[Strategy] = []
        self.scores: list[float] = []  # what strategies are compared by

    def folder(self, number: int) -> Path:
        return self.place / f"strategy-{number}"

    def add(self, strategy: Strategy, folds: FoldOptions, seconds: float = math.inf) -> bool:
        """Measure a strategy; the first one also brings the labels-only baseline.

        False where that takes longer than so many seconds, or no label can be held out.
        """
        started = time.monotonic()
        folds = replace(folds, baseline=not self.results)
        validation = CrossValidation(
            strategy.config,
            self.inputs.dataset,
            self.folder(len(self.results)),
            folds,
            self.inputs.features,
        )
        for _ in validation.run():
            if time.monotonic() - started >= seconds:
                return False
        accuracy = validation.accuracy()
        if accuracy is None:
            return False
        if folds.baseline:
            self.baseline = validation.accuracy(baseline=True)
        self.strategies.append(strategy)
        self.scores.append(accuracy.accuracy + handicap(strategy, accuracy))
        self.results.append(
            StrategyResult(
                name=strategy.name,
                accuracy=accuracy.accuracy,
                interval=accuracy.interval,
                seconds=round(time.monotonic() - started, 1),
            )
        )
        return True

    @property
    def best(self) -> int | None:
        """The number of the best strategy, the first one among equals; None: labels only."""
        assert self.baseline is not None
        least = self.baseline.accuracy
        able = [at for at, each in enumerate(self.results) if each.accuracy >= least]
        return max(able, key=lambda at: (self.scores[at], -at), default=None)

    def describe_best(self) -> str:
        assert self.baseline is not None
        name, accuracy = LABELS_ONLY, self.baseline.accuracy
        if self.best is not None:
            name, accuracy = self.results[self.best].name, self.results[self.best].accuracy
        return f"{name}: {100 * accuracy:.1f} % on held-out labels so far"

    def finish(
        self, config: ExperimentConfig, folder: RunFolder
    ) -> tuple[ExperimentConfig, tuple[StrategyResult, ...]]:
        """The settings of the best strategy, whose folds become the run's estimate."""
        assert self.baseline is not None
        best = self.best
        first = StrategyResult(
            name=LABELS_ONLY,
            accuracy=self.baseline.accuracy,
            interval=self.baseline.interval,
            seconds=0.0,
        )
        results = [first, *self.results]
        chosen = 0 if best is None else best + 1
        results[chosen] = replace(
            results[chosen], chosen=True, reason=explain_choice(results, chosen)
        )
        self.keep_folds(best or 0, folder.estimate)
        chosen_config = labels_only(config) if best is None else self.strategies[best].config
        self.delete()
        return chosen_config, tuple(results)

    def keep_folds(self, best: int, place: Path) -> None:
        """For the estimate; the baseline's folds are those of the first strategy."""
        if place.exists():
            return
        self.folder(best).rename(place)
        for file in self.folder(0).glob("*-baseline.safetensors"):
            file.rename(place / file.name)

    def delete(self) -> None:
        for place in self.place.glob("strategy-*"):
            shutil.rmtree(place, ignore_errors=True)


def list_strategies(config: ExperimentConfig) -> list[Strategy]:
    """Strategies besides labels only, the simplest first: propagated labels, then the algorithm."""
    fixed = replace(config.optimizer, rate=0.0)  # the head is fitted, and stays as it is
    propagated = replace(with_steps(config, 1), optimizer=fixed)
    return [
        Strategy("propagated labels", propagated),
        Strategy("propagated labels, then training", config),
    ]


def handicap(strategy: Strategy, accuracy: Accuracy) -> float:
    """What a network from scratch would gain in its full time: it wins close calls."""
    low, high = accuracy.interval
    return (high - low) / 4 if strategy.config.model.body == "trained" else 0.0


def explain_choice(results: Sequence[StrategyResult], chosen: int) -> str:
    """Why one of the strategies is used; the first one is labels only."""
    own = results[chosen].accuracy
    others = [each.accuracy for at, each in enumerate(results) if at != chosen]
    if own < max(others):
        return "a close call, and it will train longer than it did for the comparison"
    if own > max(others):
        return "the most accurate on held-out labels"
    if others.count(own) == 1 and own == results[0].accuracy:
        return "as accurate as labels only, and it also learns from the unlabeled pictures"
    return "the simplest of the most accurate that learn from the unlabeled pictures"


def with_data_of(config: ExperimentConfig, other: ExperimentConfig) -> ExperimentConfig:
    """The settings on the pictures, labels and seed of another run."""
    return replace(config, data=other.data, seed=other.seed, baseline=other.baseline)


@dataclass(frozen=True)
class TrainingCost:
    """Seconds that a training takes before its first step, and for each step."""

    start: float
    step: float


def measure_cost(config: ExperimentConfig, inputs: RunInputs) -> TrainingCost:
    """Of training these settings here, from a few steps."""
    started = time.monotonic()
    trainer = Assembly(config, inputs.dataset, features=inputs.features).trainer
    built = time.monotonic() - started
    trainer.schedule = replace(trainer.schedule, log_every=1)
    steps = UNTIMED_STEPS + TIMED_STEPS
    clock = [record.seconds for record in trainer.run(until=steps)]
    step = (clock[-1] - clock[UNTIMED_STEPS - 1]) / TIMED_STEPS
    return TrainingCost(built + clock[UNTIMED_STEPS - 1], step)
