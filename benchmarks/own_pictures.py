"""Folders of pictures: what `fullmatch train` achieves on them, over several choices of labels.

    python -m benchmarks.own_pictures FOLDER ... [--seeds 0 1 2] [-- OPTION ...]

A FOLDER has labeled/CLASS/*, unlabeled/* and test/CLASS/*. Seed 0 uses the labels as they are.
Other seeds draw as many labeled pictures per class from the labeled and the test pictures together,
and test on the remaining ones. Options after -- are passed to the command, such as --minutes 5.

Adds missing measurements to docs/results/own_pictures.jsonl (remove lines to measure them again)
and writes docs/results/own_pictures.md from it.
"""

import argparse
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import mean

from benchmarks.measurements import (
    append_measurement,
    format_interval,
    format_spread,
    join_cells,
    read_measurements,
)

from fullmatch.storage.result import RunResult
from fullmatch.storage.run_folder import RunFolder

RESULTS = Path(__file__).parents[1] / "docs" / "results"
COMMAND = (sys.executable, "-m", "fullmatch")
INTRODUCTION = """\
# Folders of pictures

Written by `python -m benchmarks.own_pictures`. The table shows the accuracy on the test pictures,
in percent, beside that of the labels-only baseline. The strategy was chosen on held-out labels; the
test pictures took part in no choice. Seed 0 is the folder as it is; other seeds exchange the
labeled pictures for test pictures of the same class. The 95 % intervals cover the choice of test
pictures, not that of the labels. Seconds are those of the whole command."""
HEADINGS = (
    "| seed | labels only | accuracy | difference | used | seconds |",
    "| ---: | ---: | --- | --- | --- | ---: |",
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is measured."""

    folder: str
    seed: int
    options: str


@dataclass(frozen=True, kw_only=True)
class Measurement(Case):
    """A case with its result; accuracies are fractions in [0, 1]."""

    labels: int
    unlabeled: int
    test: int
    accuracy: float
    interval: tuple[float, float]
    labels_only: float
    gain: float
    gain_interval: tuple[float, float]
    used: str
    seconds: int
    device: str

    @property
    def case(self) -> Case:
        return Case(**{field.name: getattr(self, field.name) for field in fields(Case)})

    @property
    def group(self) -> tuple[str, str, str]:
        """What the measurements of one table have in common."""
        return (self.folder, self.options, self.device)


def list_pictures(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def link_folder(folder: Path, seed: int, target: Path) -> None:
    """The pictures of `folder` under `target` as links, with the labels of the seed."""
    generator = random.Random(seed)
    for labeled in sorted(path for path in (folder / "labeled").iterdir() if path.is_dir()):
        chosen, tested = list_pictures(labeled), list_pictures(folder / "test" / labeled.name)
        if seed:
            pool = [*chosen, *tested]
            generator.shuffle(pool)
            chosen, tested = pool[: len(chosen)], pool[len(chosen) :]
        link_pictures(chosen, target / "labeled" / labeled.name)
        link_pictures(tested, target / "test" / labeled.name)
    link_pictures(list_pictures(folder / "unlabeled"), target / "unlabeled")


def link_pictures(pictures: Sequence[Path], target: Path) -> None:
    """Links in the order of the names; two pictures from two folders may have the same one."""
    target.mkdir(parents=True)
    for index, path in enumerate(sorted(pictures, key=lambda path: path.name)):
        (target / f"{index:06}{path.suffix}").symlink_to(path.resolve())


def measure(folder: Path, case: Case) -> Measurement:
    """Choose the labels, run the command, and read its result."""
    with tempfile.TemporaryDirectory() as workspace:
        pictures, run = Path(workspace) / case.folder, RunFolder(Path(workspace) / "run")
        link_folder(folder, case.seed, pictures)
        options = ["--baseline", "--seed", str(case.seed), "--out", str(run.path)]
        started = time.perf_counter()
        command = [*COMMAND, "train", str(pictures), *options, *shlex.split(case.options)]
        subprocess.run(command, check=True)
        return read_measurement(case, run.read_result(), round(time.perf_counter() - started))


def read_measurement(case: Case, result: RunResult, seconds: int) -> Measurement:
    teacher, comparison = result.teacher, result.baseline
    assert teacher is not None and comparison is not None and result.unlabeled is not None
    used = [strategy.name for strategy in result.strategies if strategy.chosen]
    return Measurement(
        **vars(case),
        labels=result.labels,
        unlabeled=result.unlabeled - result.labels,
        test=teacher.images,
        accuracy=teacher.top1,
        interval=teacher.interval,
        labels_only=teacher.top1 - comparison.gain,
        gain=comparison.gain,
        gain_interval=comparison.interval,
        used=used[0] if used else "as asked for",
        seconds=seconds,
        device=result.device,
    )


def render_page(measurements: list[Measurement]) -> str:
    """One table per folder and command."""
    parts = [INTRODUCTION]
    for group in sorted({each.group for each in measurements}):
        folder, options, device = group
        members = [each for each in measurements if each.group == group]
        members.sort(key=lambda each: each.seed)
        first = members[0]
        parts += [
            "",
            f"## `{f'fullmatch train {folder} {options}'.strip()}`",
            "",
            f"{first.labels:,} labeled, {first.unlabeled:,} unlabeled and {first.test:,} test "
            f"pictures; {device}.",
            "",
            *HEADINGS,
            *map(render_row, members),
            *([render_mean(members)] if len(members) > 1 else []),
        ]
    return "\n".join(parts) + "\n"


def render_row(row: Measurement) -> str:
    return join_cells(
        row.seed,
        f"{100 * row.labels_only:.1f}",
        format_interval(row.accuracy, row.interval),
        format_interval(row.gain, row.gain_interval, "+"),
        row.used,
        f"{row.seconds:,}",
    )


def render_mean(rows: Sequence[Measurement]) -> str:
    return join_cells(
        "mean",
        format_spread([row.labels_only for row in rows]),
        format_spread([row.accuracy for row in rows]),
        format_spread([row.gain for row in rows]),
        "",
        f"{mean(row.seconds for row in rows):,.0f}",
    )


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = sys.argv[1:] if argv is None else argv
    split = given.index("--") if "--" in given else len(given)
    arguments = parser.parse_args(given[:split])
    arguments.options = shlex.join(given[split + 1 :])
    return arguments


def main(argv: list[str] | None = None) -> None:
    arguments = parse_arguments(argv)
    arguments.results.mkdir(parents=True, exist_ok=True)
    results = arguments.results / "own_pictures.jsonl"
    for seed in arguments.seeds:
        for folder in arguments.folders:
            case = Case(folder=folder.resolve().name, seed=seed, options=arguments.options)
            if case not in [each.case for each in read_measurements(Measurement, results)]:
                append_measurement(results, measure(folder, case))
    page = render_page(read_measurements(Measurement, results))
    (arguments.results / "own_pictures.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
