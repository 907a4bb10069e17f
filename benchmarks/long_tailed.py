"""Long-tailed classes: FixMatch, FullMatch and methods for uneven classes compared.

    python -m benchmarks.long_tailed [--data digits] [--steps 500] [--seeds 0 1 2] [--only CASE ...]

Labels and unlabeled images have the same imbalance; --unlabeled-imbalance chooses another one, such
as -20 for the reversed order or 1 for equal classes. Adds missing measurements to
docs/results/long_tailed.jsonl (remove its lines to measure them again) and writes
docs/results/long_tailed.md from it. Unfinished runs stay in the folder --runs, and are resumed.
"""

import argparse
import statistics
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

from benchmarks.measurements import (
    append_measurement,
    format_spread,
    join_cells,
    read_measurements,
    train_to_end,
)

from fullmatch.experiment.settings import resolve
from fullmatch.storage.run_folder import RunFolder

RESULTS = Path(__file__).parents[1] / "docs" / "results"
NOTES = "long_tailed.notes.md"
TAIL = 3  # classes, the smallest ones, whose recall is shown


class Protocol(NamedTuple):
    """What is usual for a data set."""

    labels: int
    imbalance: float
    unlabeled: int | None  # None: as many as possible
    steps: int


PROTOCOLS = {
    "digits": Protocol(150, 10, None, 500),
    # The first class has 1,500 labels and 3,000 unlabeled images, as in USB.
    "cifar10": Protocol(3720, 100, 7443, 2**16),
}
# By name: the algorithm and its settings.
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "supervised": ("supervised", ()),
    "fixmatch": ("fixmatch", ()),
    "fullmatch": ("fullmatch", ()),
    "adamatch": ("adamatch", ()),
    "full-adamatch": ("full-adamatch", ()),
    "debiaspl": ("debiaspl", ()),
    "full-debiaspl": ("full-debiaspl", ()),
    "abc": ("abc", ()),
    "full-abc": ("full-abc", ()),
    # A mean of 0.999 follows the last 1,000 steps, which is more than a run on digits has.
    "debiaspl, momentum 0.99": ("debiaspl", ("algorithm.momentum=0.99",)),
    "full-debiaspl, momentum 0.99": ("full-debiaspl", ("algorithm.momentum=0.99",)),
    "debiaspl, momentum 0.99, factor 1": (
        "debiaspl",
        ("algorithm.momentum=0.99", "algorithm.factor=1"),
    ),
}
INTRODUCTION = f"""\
# Long-tailed classes

Written by `python -m benchmarks.long_tailed`. The sizes of the classes fall exponentially from the
first to the last, among the labels and among the unlabeled images; the test classes are equal.
*Balanced accuracy* is the mean recall of all classes, *head* and *tail* are the mean recalls of the
{TAIL} largest and the {TAIL} smallest classes by their labels. All are of the averaged model at the
end, in percent, as mean and standard deviation over the seeds, which choose the images and the
initial weights. *Difference* is that to the balanced accuracy of `fixmatch`, seed by seed on
the same images. Nothing is chosen on the test images."""
HEADINGS = (
    "| method | seeds | balanced accuracy | difference | head | tail | seconds |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
)


@dataclass(frozen=True, kw_only=True)
class LongTailedCase:
    """What is measured."""

    data: str
    method: str
    seed: int
    steps: int
    labels: int
    imbalance: float
    unlabeled_imbalance: float


@dataclass(frozen=True, kw_only=True)
class LongTailedMeasurement(LongTailedCase):
    """A case with its result."""

    unlabeled: int
    balanced_accuracy: float
    recalls: tuple[float, ...]  # by class, the one with the most labels first
    seconds: float
    device: str

    @property
    def case(self) -> LongTailedCase:
        return LongTailedCase(**{f.name: getattr(self, f.name) for f in fields(LongTailedCase)})

    @property
    def group(self) -> tuple[str, int, float, int, float, int, str]:
        """What the measurements of one table have in common."""
        return (
            self.data,
            self.labels,
            self.imbalance,
            self.unlabeled,
            self.unlabeled_imbalance,
            self.steps,
            self.device,
        )


def measure(case: LongTailedCase, root: str | None, runs: Path) -> LongTailedMeasurement:
    """Train one method with one seed, or continue where an earlier process stopped."""
    algorithm, settings = METHODS[case.method]
    unlabeled = PROTOCOLS[case.data].unlabeled
    config = resolve(
        data=case.data,
        labels=case.labels,
        steps=case.steps,
        algorithm=algorithm,
        seed=case.seed,
        assignments=(
            f"data.imbalance={case.imbalance}",
            f"data.unlabeled_imbalance={case.unlabeled_imbalance}",
            *([f"data.unlabeled={unlabeled}"] if unlabeled else []),
            *([f"data.root={root}"] if root else []),
            *(["training.threads=1"] if case.data == "digits" else []),
            *settings,
        ),
    )
    folder = RunFolder((runs / name_run(case)).absolute())
    result, seconds = train_to_end(config, folder)
    scores = result.teacher
    assert scores is not None and scores.balanced_accuracy is not None
    assert result.unlabeled is not None
    return LongTailedMeasurement(
        **vars(case),
        unlabeled=result.unlabeled - result.labels,
        balanced_accuracy=scores.balanced_accuracy,
        recalls=tuple(recall for recall in scores.per_class if recall is not None),
        seconds=seconds,
        device=result.device,
    )


def name_run(case: LongTailedCase) -> str:
    shape = f"{case.labels}-{case.imbalance:g}-{case.unlabeled_imbalance:g}"
    method = case.method.replace(", ", "-").replace(" ", "-")
    return f"{case.data}-{shape}-{method}-{case.seed}-{case.steps}"


def render_page(measurements: list[LongTailedMeasurement], notes: str = "") -> str:
    """One table per data set and setting, and the notes."""
    parts = [INTRODUCTION]
    for group in sorted({each.group for each in measurements}):
        data, labels, imbalance, unlabeled, unlabeled_imbalance, steps, device = group
        members = [each for each in measurements if each.group == group]
        parts += [
            "",
            f"## {data}, imbalance {imbalance:g} and {unlabeled_imbalance:g}",
            "",
            f"{labels:,} labels with an imbalance of {imbalance:g}, {unlabeled:,} unlabeled images "
            f"with one of {unlabeled_imbalance:g}, {steps:,} steps; {device}.",
            "",
            *HEADINGS,
        ]
        rows = [(each, [m for m in members if m.method == each]) for each in METHODS]
        reference = {m.seed: m for m in members if m.method == "fixmatch"}
        parts += [render_row(name, runs, reference) for name, runs in rows if runs]
    return "\n".join(parts) + "\n" + (f"\n{notes}" if notes else "")


def render_row(
    name: str,
    runs: list[LongTailedMeasurement],
    reference: dict[int, LongTailedMeasurement],
) -> str:
    pairs = [(run, reference[run.seed]) for run in runs if run.seed in reference]
    differences = [run.balanced_accuracy - other.balanced_accuracy for run, other in pairs]
    return join_cells(
        f"`{name}`",
        len(runs),
        format_spread([run.balanced_accuracy for run in runs]),
        "-" if name == "fixmatch" or not pairs else format_spread(differences, sign="+"),
        format_spread([statistics.mean(run.recalls[:TAIL]) for run in runs]),
        format_spread([statistics.mean(run.recalls[-TAIL:]) for run in runs]),
        f"{statistics.mean(run.seconds for run in runs):,.0f}",
    )


def list_cases(arguments: argparse.Namespace) -> list[LongTailedCase]:
    protocol = PROTOCOLS[arguments.data]
    imbalance = arguments.imbalance or protocol.imbalance
    other = arguments.unlabeled_imbalance
    return [
        LongTailedCase(
            data=arguments.data,
            method=method,
            seed=seed,
            steps=arguments.steps or protocol.steps,
            labels=arguments.labels or protocol.labels,
            imbalance=imbalance,
            unlabeled_imbalance=imbalance if other is None else other,
        )
        for seed in arguments.seeds
        for method in arguments.only
    ]


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=PROTOCOLS, default="digits")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--labels", type=int)
    parser.add_argument("--imbalance", type=float)
    parser.add_argument("--unlabeled-imbalance", type=float)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--root", help="folder of the data set's files")
    parser.add_argument("--runs", type=Path, default=Path("runs/long_tailed"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only-table", action="store_true", help="measure nothing")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    arguments = parse_arguments(argv)
    arguments.results.mkdir(parents=True, exist_ok=True)
    results = arguments.results / "long_tailed.jsonl"
    done = [each.case for each in read_measurements(LongTailedMeasurement, results)]
    cases = [] if arguments.only_table else list_cases(arguments)
    for case in cases:
        if case not in done:
            measurement = measure(case, arguments.root, arguments.runs)
            append_measurement(results, measurement)
            percent = 100 * measurement.balanced_accuracy
            print(f"{case.method:16} {case.seed} {percent:.1f} {measurement.seconds:.0f} s")
    notes = arguments.results / NOTES
    text = notes.read_text(encoding="utf-8") if notes.exists() else ""
    page = render_page(read_measurements(LongTailedMeasurement, results), text)
    (arguments.results / "long_tailed.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
