"""Folders of pictures: the test accuracy of every strategy, not only of the one that is used.

    python benchmarks/strategies.py FOLDER ... [--labels 40 250] [--seeds 0 1 2] [--minutes 10]

A FOLDER has labeled/CLASS/* and test/CLASS/*. The seed draws so many labels, equally many per
class; all other labels are hidden. Strategies are those that `fullmatch train` compares on held-out
labels, but here each of them trains a model, which is measured on the test pictures. A network from
scratch gets the given minutes, and so many steps as fit into them.

Time is CPU time of one thread, so that other programs do not change what fits. Adds missing
measurements to docs/results/strategies.jsonl (remove lines to measure them again) and writes
docs/results/strategies.md from it.
"""

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from fullmatch.config import ExperimentConfig
from fullmatch.data import SemiDataset, Source
from fullmatch.evaluation.intervals import wilson_interval
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.feature_pass import PassOptions
from fullmatch.experiment.inputs import RunInputs, add_features, load_inputs
from fullmatch.experiment.plan_types import PlanOptions
from fullmatch.experiment.presets import labels_only
from fullmatch.experiment.pretrained_plan import frozen_config, frozen_size
from fullmatch.experiment.scratch_plan import plan_scratch
from fullmatch.experiment.source_scan import scan_source
from fullmatch.experiment.strategies import LABELS_ONLY, list_strategies
from fullmatch.models.pretrained import preferred_weights
from fullmatch.storage.json_files import from_json, to_json

RESULTS = Path(__file__).parents[1] / "docs" / "results"
CPU = torch.device("cpu")
SCRATCH = "from scratch"
TIMED_STEPS = 10  # after one warm-up step
INTRODUCTION = """\
# Strategies on folders of pictures

Written by `python benchmarks/strategies.py`. The tables show the accuracy on the test pictures, in
percent: mean and standard deviation over the choices of labels, or one choice with its 95 %
interval. `fullmatch train` measures the strategies on held-out labels and uses the best; here each
of them is measured. Features are those of the packaged network (timm:tf_efficientnet_lite0).
Seconds are CPU time of one thread: feature pass and head together, or training from scratch."""
HEADINGS = (
    "| labels | strategy | accuracy | choices of labels | seconds |",
    "| ---: | --- | --- | ---: | ---: |",
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is measured."""

    folder: str
    labels: int
    seed: int
    strategy: str
    minutes: float  # of training from scratch; 0 for a head


@dataclass(frozen=True, kw_only=True)
class Measurement(Case):
    """A case with its result."""

    network: str
    steps: int
    pictures: int
    test: int
    accuracy: float
    seconds: int

    @property
    def case(self) -> Case:
        return Case(**{name: getattr(self, name) for name in Case.__dataclass_fields__})


def measure_folder(
    folder: Path, cases: Sequence[Case], cache: Path | None
) -> Iterator[Measurement]:
    """All cases of one folder; its pictures pass through the network once."""
    source = scan_source(str(folder))
    weights = preferred_weights(CPU)
    assert weights is not None, "no pretrained weights on this machine"
    frozen = frozen_config(source, str(folder), "fullmatch", weights.model)
    size = frozen_size(min(source.images.shape[1:]))
    frozen = replace(frozen, data=replace(frozen.data, size=size))
    features, pass_seconds = None, 0.0
    for case in cases:
        if case.strategy == SCRATCH:
            yield measure_scratch(source, folder, case)
            continue
        config, inputs = load_inputs(with_labels(frozen, case))
        if features is None:
            started = time.process_time()
            options = PassOptions(folder=cache, progress=print_progress)
            features = add_features(inputs, replace(config, seed=0), options)[0].features
            pass_seconds = time.process_time() - started
        config = strategy_config(config, case.strategy)
        yield measure(config, replace(inputs, features=features), case, pass_seconds)


def print_progress(done: int, total: int) -> None:
    if done % 1000 < 8:
        print(f"{done:,} of {total:,} pictures", flush=True)


def with_labels(config: ExperimentConfig, case: Case) -> ExperimentConfig:
    data = replace(config.data, labels=case.labels)
    return replace(config, data=data, seed=case.seed, baseline=False)


def strategy_config(config: ExperimentConfig, name: str) -> ExperimentConfig:
    """The settings of a head by the name of its strategy."""
    if name == LABELS_ONLY:
        return labels_only(config)
    return next(each.config for each in list_strategies(config) if each.name == name)


def measure_scratch(source: Source, folder: Path, case: Case) -> Measurement:
    """The network that is planned on a machine without pretrained weights."""
    options = PlanOptions(minutes=case.minutes, pretrained=False)
    kept = draw_source(source, folder, case)
    plan = plan_scratch(kept, str(folder), options, CPU, measure_cpu_seconds)
    config, inputs = load_inputs(with_labels(plan.config, case))
    return measure(config, inputs, case, 0.0)


def draw_source(source: Source, folder: Path, case: Case) -> Source:
    """The source as it is planned for: with the labels of the case only."""
    from fullmatch.data import draw_split

    split = draw_split(source.labels, case.labels, case.seed, source.num_classes, folder.name)
    labels = torch.full_like(source.labels, -1)
    labels[list(split.labeled)] = source.labels[list(split.labeled)]
    return replace(source, labels=labels)


def measure_cpu_seconds(config: ExperimentConfig, source: Source) -> float:
    """CPU time of a step."""
    steps = TIMED_STEPS + 1
    training = replace(config.training, steps=steps, log_every=1, checkpoint_every=1)
    trainer = Assembly(replace(config, training=training), SemiDataset.from_source(source)).trainer
    clock = [time.process_time() for _ in trainer.run(until=steps)]
    return statistics.median(later - earlier for earlier, later in itertools.pairwise(clock))


def measure(
    config: ExperimentConfig, inputs: RunInputs, case: Case, pass_seconds: float
) -> Measurement:
    """Train as the config says, and measure on the test pictures."""
    started = time.process_time()
    model = Assembly(config, inputs.dataset, features=inputs.features)
    for _ in model.trainer.run(until=config.training.steps):
        pass
    seconds = pass_seconds + time.process_time() - started
    test = inputs.dataset.test_labels
    assert test is not None
    return Measurement(
        **vars(case),
        network=config.model.name,
        steps=config.training.steps,
        pictures=inputs.dataset.image_count,
        test=len(test),
        accuracy=model.evaluate()["teacher"].top1,
        seconds=round(seconds),
    )


def read_measurements(path: Path) -> list[Measurement]:
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [from_json(Measurement, json.loads(line)) for line in lines]


def render_page(measurements: Sequence[Measurement]) -> str:
    """One table per folder."""
    parts = [INTRODUCTION]
    for folder in sorted({each.folder for each in measurements}):
        members = [each for each in measurements if each.folder == folder]
        first = members[0]
        title = f"{first.pictures:,} pictures for training, {first.test:,} for testing."
        parts += ["", f"## {folder}", "", title, "", *HEADINGS]
        for labels in sorted({each.labels for each in members}):
            rows = [each for each in members if each.labels == labels]
            names = dict.fromkeys((each.strategy, each.minutes) for each in rows)
            parts += [
                render_row([each for each in rows if (each.strategy, each.minutes) == name])
                for name in names
            ]
    return "\n".join(parts) + "\n"


def render_row(rows: Sequence[Measurement]) -> str:
    """One strategy over the choices of labels."""
    first, values = rows[0], [each.accuracy for each in rows]
    if len(values) > 1:
        accuracy = f"{100 * statistics.mean(values):.1f} ± {100 * statistics.stdev(values):.1f}"
    else:
        low, high = wilson_interval(first.accuracy, first.test)
        accuracy = f"{100 * first.accuracy:.1f} ({100 * low:.1f} to {100 * high:.1f})"
    name = first.strategy
    if first.strategy == SCRATCH:
        name += f" ({first.network}, {first.minutes:g} min, {first.steps:,} steps)"
    seconds = statistics.mean(each.seconds for each in rows)
    cells = (f"{first.labels}", name, accuracy, f"{len(rows)}", f"{seconds:,.0f}")
    return f"| {' | '.join(cells)} |"


def list_cases(folder: Path, options: argparse.Namespace) -> list[Case]:
    """Heads for every seed, and a network from scratch for as many seeds as asked for."""
    heads = (LABELS_ONLY, "propagated labels", "propagated labels, then training")
    cases = [
        Case(folder=folder.name, labels=labels, seed=seed, strategy=name, minutes=0)
        for seed, labels, name in itertools.product(options.seeds, options.labels, heads)
    ]
    return cases + [
        Case(folder=folder.name, labels=labels, seed=seed, strategy=SCRATCH, minutes=minutes)
        for labels, seed in itertools.product(options.labels, options.scratch)
        for minutes in [options.minutes]
    ]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    parser.add_argument("--labels", type=int, nargs="+", default=[40])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--scratch", type=int, nargs="*", default=[0], help="seeds from scratch")
    parser.add_argument("--minutes", type=float, default=10.0, help="of training from scratch")
    parser.add_argument("--cache", type=Path, help="a folder that keeps features for another time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    ledger = options.results / "strategies.jsonl"
    for folder in options.folders:
        done = [each.case for each in read_measurements(ledger)]
        missing = [case for case in list_cases(folder.resolve(), options) if case not in done]
        for measurement in measure_folder(folder.resolve(), missing, options.cache):
            with ledger.open("a", encoding="utf-8") as file:
                file.write(json.dumps(to_json(measurement)) + "\n")
    page = render_page(read_measurements(ledger))
    (options.results / "strategies.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
