"""Unlabeled images of classes without labels: FixMatch, FullMatch and IOMatch compared.

    python -m benchmarks.open_set [--data digits] [--steps 800] [--seeds 0 1 2] [--only CASE ...]

The unknown classes are 8 and 9 of digits; of CIFAR-10 they are the four vehicles, as in IOMatch's
paper. Adds missing measurements to docs/results/open_set.jsonl (remove its lines to measure them
again) and writes docs/results/open_set.md from it. Unfinished runs stay in the folder --runs, and
are resumed.
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
NOTES = "open_set.notes.md"


class Protocol(NamedTuple):
    """What is usual for a data set."""

    classes: int
    unknown: tuple[str, ...]
    steps: int


PROTOCOLS = {
    "digits": Protocol(10, ("8", "9"), 800),
    "cifar10": Protocol(10, ("airplane", "automobile", "ship", "truck"), 2**16),
}
# By name: the algorithm and its settings.
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "fixmatch": ("fixmatch", ()),
    "fullmatch": ("fullmatch", ()),
    "iomatch": ("iomatch", ("algorithm.align=true",)),
    "full-iomatch": ("full-iomatch", ("algorithm.align=true",)),
    "iomatch, not aligned": ("iomatch", ("algorithm.align=false",)),
    "full-iomatch, not aligned": ("full-iomatch", ("algorithm.align=false",)),
}
INTRODUCTION = """\
# Unknown classes

Written by `python -m benchmarks.open_set`. The labels of the unknown classes are hidden, and their
images stay among the unlabeled ones; each known class has the same number of labels. *Accuracy* is
that of the averaged model at the end, on test images of known classes only. *AUROC* is the chance
that a test image of a known class gets a higher score than one of an unknown class. The score is
IOMatch's probability of a known class; for the other methods it is the largest class probability.
*Open-set accuracy* is the mean accuracy over the known classes and "unknown", which only IOMatch
predicts; *unknown* is the share of unknown images that it recognizes. All are in percent, as mean
and standard deviation over the seeds, which choose the labels and the initial weights. Nothing is
chosen on the test images."""
HEADINGS = (
    "| method | seeds | accuracy | AUROC | open-set accuracy | unknown | seconds |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
)


@dataclass(frozen=True, kw_only=True)
class OpenSetCase:
    """What is measured."""

    data: str
    method: str
    seed: int
    steps: int
    labels: int
    unknown: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class OpenSetMeasurement(OpenSetCase):
    """A case with its result."""

    accuracy: float
    auroc: float
    balanced_accuracy: float | None = None
    unknown_accuracy: float | None = None
    seconds: float
    device: str

    @property
    def case(self) -> OpenSetCase:
        return OpenSetCase(**{f.name: getattr(self, f.name) for f in fields(OpenSetCase)})

    @property
    def group(self) -> tuple[str, int, int, tuple[str, ...], str]:
        """What the measurements of one table have in common."""
        return self.data, self.labels, self.steps, self.unknown, self.device


def measure(case: OpenSetCase, root: str | None, runs: Path) -> OpenSetMeasurement:
    """Train one method with one seed, or continue where an earlier process stopped."""
    algorithm, settings = METHODS[case.method]
    config = resolve(
        data=case.data,
        labels=case.labels,
        steps=case.steps,
        algorithm=algorithm,
        seed=case.seed,
        assignments=(
            f"data.unknown_classes={','.join(case.unknown)}",
            *([f"data.root={root}"] if root else []),
            *(["training.threads=1"] if case.data == "digits" else []),
            *settings,
        ),
    )
    name = f"{case.data}-{case.labels}-{case.method}-{case.seed}-{case.steps}".replace(", ", "-")
    folder = RunFolder((runs / name.replace(" ", "-")).absolute())
    result, seconds = train_to_end(config, folder)
    assert result.teacher is not None and result.open_set is not None
    return OpenSetMeasurement(
        **vars(case),
        accuracy=result.teacher.top1,
        auroc=result.open_set.auroc,
        balanced_accuracy=result.open_set.balanced_accuracy,
        unknown_accuracy=result.open_set.unknown_accuracy,
        seconds=seconds,
        device=result.device,
    )


def render_page(measurements: list[OpenSetMeasurement], notes: str = "") -> str:
    """One table per data set and setting, and the notes."""
    parts = [INTRODUCTION]
    for group in sorted({each.group for each in measurements}):
        data, labels, steps, unknown, device = group
        known = PROTOCOLS[data].classes - len(unknown)
        members = [each for each in measurements if each.group == group]
        parts += [
            "",
            f"## {data}: {known} known and {len(unknown)} unknown classes, {labels} labels",
            "",
            f"Unknown: {', '.join(unknown)}. {steps:,} steps; {device}.",
            "",
            *HEADINGS,
            *(
                render_row(method, rows)
                for method in METHODS
                if (rows := [each for each in members if each.method == method])
            ),
        ]
    return "\n".join(parts) + "\n" + (f"\n{notes}" if notes else "")


def render_row(method: str, rows: list[OpenSetMeasurement]) -> str:
    seconds = statistics.mean(row.seconds for row in rows)
    return join_cells(
        method,
        len(rows),
        format_spread([row.accuracy for row in rows]),
        format_spread([row.auroc for row in rows]),
        format_spread([row.balanced_accuracy for row in rows]),
        format_spread([row.unknown_accuracy for row in rows]),
        f"{seconds:,.0f}",
    )


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=PROTOCOLS, default="digits")
    parser.add_argument("--steps", type=int, help="by default 800 for digits, 65,536 for cifar10")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--labels-per-class", type=int, default=4)
    parser.add_argument("--unknown", nargs="+", help="names of the unknown classes")
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--root", help="folder of the data set's files")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "open-set")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only-table", action="store_true", help="measure nothing")
    return parser.parse_args(argv)


def list_cases(arguments: argparse.Namespace) -> list[OpenSetCase]:
    protocol = PROTOCOLS[arguments.data]
    unknown = tuple(arguments.unknown or protocol.unknown)
    return [
        OpenSetCase(
            data=arguments.data,
            method=method,
            seed=seed,
            steps=arguments.steps or protocol.steps,
            labels=arguments.labels_per_class * (protocol.classes - len(unknown)),
            unknown=unknown,
        )
        for seed in arguments.seeds
        for method in arguments.only
    ]


def write_page(results: Path) -> str:
    notes = results / NOTES
    page = render_page(
        read_measurements(OpenSetMeasurement, results / "open_set.jsonl"),
        notes.read_text(encoding="utf-8") if notes.exists() else "",
    )
    (results / "open_set.md").write_text(page, encoding="utf-8")
    return page


def main(argv: list[str] | None = None) -> None:
    arguments = parse_arguments(argv)
    arguments.results.mkdir(parents=True, exist_ok=True)
    ledger = arguments.results / "open_set.jsonl"
    done = {each.case for each in read_measurements(OpenSetMeasurement, ledger)}
    missing = [] if arguments.only_table else [c for c in list_cases(arguments) if c not in done]
    for number, case in enumerate(missing, start=1):
        row = measure(case, arguments.root, arguments.runs)
        append_measurement(ledger, row)
        write_page(arguments.results)
        print(
            f"{number}/{len(missing)}  {row.method}, seed {row.seed}: accuracy "
            f"{100 * row.accuracy:.1f}, AUROC {100 * row.auroc:.1f}, {row.seconds:.0f} s",
            flush=True,
        )
    print(write_page(arguments.results))


if __name__ == "__main__":
    main()
