"""Fashion-MNIST as a folder of pictures: what `fullmatch train` achieves on it.

    python -m benchmarks.fashion [--labels 40 250] [--seeds 0] [--minutes 8] [-- OPTION ...]

Writes labeled/CLASS/*.png and unlabeled/*.png and trains with the command a user would type: once
with test/CLASS/*.png, and once without, so that accuracy is estimated on held-out labels. The test
pictures then show how close the estimate is. Options after -- are passed to the command.

Adds missing measurements to docs/results/fashion.jsonl (remove the file to measure everything
again) and writes docs/results/fashion.md from it. Each takes about the given minutes plus one.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from benchmarks.measurements import (
    append_measurement,
    format_interval,
    join_cells,
    read_measurements,
)
from PIL import Image

from fullmatch import data
from fullmatch.data import ImageStore, Source, Split, TensorStore
from fullmatch.data.sources.catalog import data_root
from fullmatch.errors import UserError
from fullmatch.experiment.settings import read_config
from fullmatch.inference.evaluate import evaluate_run
from fullmatch.storage.result import Estimate, RunResult
from fullmatch.storage.run_folder import RunFolder

RESULTS = Path(__file__).parents[1] / "docs" / "results"
COMMAND = (sys.executable, "-m", "fullmatch")
TEST_FOLDER, HELD_OUT = "test folder", "held-out labels"
INTRODUCTION = """\
# Fashion-MNIST as a folder of pictures

Written by `python -m benchmarks.fashion`. The seed decides which labels are drawn, equally many
per class, and is also the seed of training; the unlabeled pictures are other training pictures.
The table shows the final accuracy of the averaged model, in percent, beside that of the
labels-only baseline, as the command reports them: measured on a test folder or, without one,
estimated on held-out labels. *True accuracy* checks an estimate: it is the accuracy of the same
model on the test pictures, which that run never saw. The 95 % intervals cover the choice of
pictures that were measured, not the choice of the seed. Seconds are those of the whole command."""
HEADINGS = (
    "| labels | seed | measured on | accuracy | baseline | difference | true accuracy "
    "| network | steps | seconds |",
    "| ---: | ---: | --- | --- | ---: | --- | ---: | --- | ---: | ---: |",
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is measured."""

    labels: int
    seed: int
    measured: str  # TEST_FOLDER or HELD_OUT
    unlabeled: int
    test: int
    minutes: float
    options: str


@dataclass(frozen=True, kw_only=True)
class Accuracies:
    """What a run reports; fractions in [0, 1]."""

    accuracy: float
    interval: tuple[float, float]
    labels_only: float
    gain: float
    gain_interval: tuple[float, float]
    truth: float | None = None  # on the test pictures, if `accuracy` is an estimate


@dataclass(frozen=True, kw_only=True)
class Measurement(Accuracies, Case):
    """A case with its result."""

    network: str
    steps: int
    seconds: int
    device: str

    @property
    def case(self) -> Case:
        return Case(**{field.name: getattr(self, field.name) for field in fields(Case)})

    @property
    def group(self) -> tuple[float, str, int, int, str]:
        """What the measurements of one table have in common."""
        return (self.minutes, self.options, self.unlabeled, self.test, self.device)


def load_fashion(folder: Path | None) -> Source:
    if data.DATASETS["fashion-mnist"].locate(data_root(folder)) is None:
        raise UserError(
            f"no Fashion-MNIST in {data_root(folder)}: apt install dataset-fashion-mnist, or give "
            "the folder of its four idx.gz files with --source"
        )
    return data.load("fashion-mnist", root=folder, download=False)


def write_training_pictures(source: Source, split: Split, unlabeled: int, folder: Path) -> None:
    """The labeled pictures by class, and other pictures drawn with the seed of the split."""
    for index, label in zip(split.labeled, split.targets, strict=True):
        write_picture(source.images, index, folder / "labeled" / folder_name(source.classes[label]))
    others = np.setdiff1d(np.arange(split.images), split.labeled)
    for index in np.random.default_rng(split.seed).permutation(others)[:unlabeled].tolist():
        write_picture(source.images, index, folder / "unlabeled")


def write_test_pictures(source: Source, count: int, folder: Path) -> None:
    assert source.test is not None and source.test_labels is not None
    for index, label in enumerate(source.test_labels[:count].tolist()):
        write_picture(source.test, index, folder / "test" / folder_name(source.classes[label]))


def write_picture(store: ImageStore, index: int, folder: Path) -> None:
    assert isinstance(store, TensorStore)
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(store.images[index, 0].numpy()).save(folder / f"{index:05}.png")


def folder_name(label: str) -> str:
    """T-shirt for T-shirt/top, since a folder's name has no slash."""
    return label.partition("/")[0]


def measure(source: Source, case: Case) -> Measurement:
    """Write the folder, run the command, and read its result."""
    split = data.draw_split(source.labels, case.labels, case.seed, source.num_classes, source.name)
    with tempfile.TemporaryDirectory() as folder:
        pictures, run = Path(folder) / "fashion", RunFolder(Path(folder) / "run")
        write_training_pictures(source, split, case.unlabeled, pictures)
        if case.measured == TEST_FOLDER:
            write_test_pictures(source, case.test, pictures)
        options = ["--minutes", f"{case.minutes:g}", "--seed", str(case.seed)]
        options += ["--out", str(run.path), *shlex.split(case.options)]
        started = time.perf_counter()
        subprocess.run([*COMMAND, "train", str(pictures), *options], check=True)
        seconds = round(time.perf_counter() - started)
        result = run.read_result()
        if case.measured == TEST_FOLDER:
            accuracies = read_test_accuracy(result)
        else:
            write_test_pictures(source, case.test, pictures)
            assert result.estimate is not None
            accuracies = read_estimate(result.estimate, evaluate_run(run).scores.top1)
        return Measurement(
            **vars(case),
            **vars(accuracies),
            network=read_config(run).model.name,
            steps=result.steps,
            seconds=seconds,
            device=result.device,
        )


def read_test_accuracy(result: RunResult) -> Accuracies:
    teacher, comparison = result.teacher, result.baseline
    assert teacher is not None and comparison is not None
    return Accuracies(
        accuracy=teacher.top1,
        interval=teacher.interval,
        labels_only=teacher.top1 - comparison.gain,
        gain=comparison.gain,
        gain_interval=comparison.interval,
    )


def read_estimate(estimate: Estimate, truth: float) -> Accuracies:
    return Accuracies(
        accuracy=estimate.accuracy,
        interval=estimate.interval,
        labels_only=estimate.baseline.accuracy,
        gain=estimate.gain.gain,
        gain_interval=estimate.gain.interval,
        truth=truth,
    )


def render_page(measurements: list[Measurement]) -> str:
    """One table per command that was measured."""
    parts = [INTRODUCTION]
    for group in sorted({each.group for each in measurements}):
        minutes, options, unlabeled, test, device = group
        command = f"fullmatch train fashion --minutes {minutes:g} {options}".strip()
        members = [each for each in measurements if each.group == group]
        members.sort(key=lambda each: (each.labels, each.seed))
        parts += [
            "",
            f"## `{command}`",
            "",
            f"{unlabeled:,} unlabeled and {test:,} test pictures; {device}.",
            "",
            *HEADINGS,
            *map(render_row, members),
        ]
    return "\n".join(parts) + "\n"


def render_row(row: Measurement) -> str:
    return join_cells(
        row.labels,
        row.seed,
        row.measured,
        format_interval(row.accuracy, row.interval),
        f"{100 * row.labels_only:.1f}",
        format_interval(row.gain, row.gain_interval, "+"),
        "-" if row.truth is None else f"{100 * row.truth:.1f}",
        row.network,
        f"{row.steps:,}",
        f"{row.seconds:,}",
    )


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[40, 250])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--unlabeled", type=int, default=6000)
    parser.add_argument("--test", type=int, default=10_000)
    parser.add_argument("--source", type=Path, help="folder of the four idx.gz files")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only-table", action="store_true", help="measure nothing")
    parser.add_argument("options", nargs="*", help="after --: options of fullmatch train")
    return parser.parse_args(argv)


def list_cases(arguments: argparse.Namespace) -> list[Case]:
    return [
        Case(
            labels=labels,
            seed=seed,
            measured=measured,
            unlabeled=arguments.unlabeled,
            test=arguments.test,
            minutes=arguments.minutes,
            options=shlex.join(arguments.options),
        )
        for seed in arguments.seeds
        for labels in arguments.labels
        for measured in (TEST_FOLDER, HELD_OUT)
    ]


def main(argv: list[str] | None = None) -> None:
    arguments = parse_arguments(argv)
    arguments.results.mkdir(parents=True, exist_ok=True)
    results = arguments.results / "fashion.jsonl"
    done = [each.case for each in read_measurements(Measurement, results)]
    cases = [] if arguments.only_table else list_cases(arguments)
    missing = [case for case in cases if case not in done]
    if missing:
        try:
            source = load_fashion(arguments.source)
        except UserError as error:
            sys.exit(str(error))
        for case in missing:
            append_measurement(results, measure(source, case))
    page = render_page(read_measurements(Measurement, results))
    (arguments.results / "fashion.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
