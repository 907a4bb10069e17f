"""What each part of the fast preset adds: every part alone, then together, at the same steps.

    python benchmarks/recipe.py [--minutes 28] [--steps 16384] [--folds 0 1] [--parallel 2]

Adds missing measurements to docs/results/recipe.jsonl (remove lines to measure them again) and
writes docs/results/recipe.md from it. Trainings that do not fit into --minutes pause, and the same
command continues them. Trials are compared on hidden labels of training images, never on the test
set: its accuracy is only shown.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import mean

from fullmatch.config import ExperimentConfig
from fullmatch.data import TensorStore
from fullmatch.errors import NonFiniteLoss, UserError
from fullmatch.experiment.nan_recovery import train_with_rollback
from fullmatch.experiment.run import Run
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import resume, start
from fullmatch.storage.json_files import from_json, to_json
from fullmatch.storage.run_folder import RunFolder

RESULTS = Path(__file__).parents[1] / "docs" / "results"
HIDDEN = 5000  # training images whose hidden labels compare trials
TEACHER = ("training.pseudo_labels=teacher", "training.ema_schedule=warmup")
CURRICULUM = ("training.curriculum=0.7",)
START = ("training.self_supervised=0.15",)
TRIALS: dict[str, tuple[str, ...]] = {
    "paper": (),
    "rate to 0": ("optimizer.cosine=0.5",),
    "EMA warm-up": ("training.ema_schedule=warmup",),
    "norm momentum 0.01": ("model.norm_momentum=0.01",),
    "teacher": TEACHER,
    "teacher, norm momentum 0.01": (*TEACHER, "model.norm_momentum=0.01"),
    "teacher, norm momentum 0.05": (*TEACHER, "model.norm_momentum=0.05"),
    "curriculum": CURRICULUM,
    "even curriculum": ("training.curriculum=0.0",),
    "labels on strong views": ("training.labeled_view=strong",),
    "labels on both views": ("training.labeled_view=both",),
    "labeled batch 128": ("training.batch=128", "training.ratio=3.5"),
    "self-supervised start": START,
    "weight decay 0.001": ("optimizer.weight_decay=0.001",),
    "fast": ("budget=fast",),
    "fast, labels on both views": ("budget=fast", "training.labeled_view=both"),
    "fast, self-supervised start": ("budget=fast", *START),
}
INTRODUCTION = """\
# Parts of the fast preset

Written by `python benchmarks/recipe.py`. Every trial is the paper's settings with the changes
named; `fast` is the [preset](../fast.md). *Hidden labels* is the accuracy of the averaged model on
training images whose labels were hidden, and decides what is kept; *difference* is to the paper's
settings on the same folds. The test accuracy is shown, not used. Minutes are those of training."""
HEADINGS = (
    "| trial | folds | hidden labels | difference | test | minutes |",
    "| --- | --- | ---: | ---: | ---: | ---: |",
)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One training."""

    data: str
    labels: int
    algorithm: str
    steps: int
    fold: int
    name: str
    settings: str  # as in --set, joined by spaces

    @property
    def folder(self) -> str:
        words = f"{self.data}-{self.labels}-{self.algorithm}-{self.steps}-{self.name}-{self.fold}"
        return "".join(char if char.isalnum() or char in ".-" else "-" for char in words)

    @property
    def group(self) -> tuple[str, int, str, int]:
        """What the trials of one table have in common."""
        return (self.data, self.labels, self.algorithm, self.steps)


@dataclass(frozen=True, kw_only=True)
class Measurement(Trial):
    """A trial with its result, or with the reason why there is none."""

    hidden: float | None = None  # accuracies, fractions in [0, 1]
    test: float | None = None
    minutes: float | None = None
    device: str | None = None
    failure: str | None = None

    @property
    def trial(self) -> Trial:
        return Trial(**{field.name: getattr(self, field.name) for field in fields(Trial)})


def measure(trial: Trial, runs: Path, deadline: float) -> Measurement | None:
    """Start or resume a training; None if it paused at the deadline."""
    folder = RunFolder(runs / trial.folder)
    try:
        if folder.config.exists():
            run = resume(folder)
        else:
            run = start(config_of(trial), RunFolder(folder.path, new=True))
        for record in train_with_rollback(run):
            if record.paused:
                return None
            run.trainer.stop = time.time() > deadline
        return summarize(trial, run)
    except (UserError, NonFiniteLoss) as error:
        return Measurement(**vars(trial), failure=str(error))


def config_of(trial: Trial) -> ExperimentConfig:
    words = trial.settings.split()
    return resolve(
        data=trial.data,
        labels=trial.labels,
        algorithm=trial.algorithm,
        steps=trial.steps,
        seed=trial.fold,
        budget="fast" if "budget=fast" in words else None,
        assignments=[word for word in words if word != "budget=fast"],
    )


def summarize(trial: Trial, run: Run) -> Measurement:
    teacher = run.result.teacher
    return Measurement(
        **vars(trial),
        hidden=accuracy_on_hidden_labels(run),
        test=None if teacher is None else teacher.top1,
        minutes=round(run.result.seconds / 60, 2),
        device=run.result.device,
    )


def accuracy_on_hidden_labels(run: Run) -> float:
    """Of the averaged model on training images that it had no labels of."""
    dataset = run.dataset
    labeled = set(dataset.labeled.tolist())
    hidden = [at for at in dataset.unlabeled.tolist() if at not in labeled][:HIDDEN]
    positions = dataset.unlabeled.new_tensor(hidden)
    pictures = TensorStore(dataset.images.read(positions))
    predicted = run.predict("teacher", pictures).argmax(dim=1).cpu()
    return float((predicted == dataset.labels[positions]).double().mean())


def measure_apart(trial: Trial, runs: Path, deadline: float) -> Measurement | None:
    """`measure` in a process of its own, so that several trainings share a GPU."""
    task = json.dumps({"trial": vars(trial), "runs": str(runs), "deadline": deadline})
    done = subprocess.run(
        [sys.executable, __file__, "--task", task], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        return Measurement(**vars(trial), failure=f"ended with exit status {done.returncode}")
    return parse_measurement(done.stdout.splitlines()[-1])


def parse_measurement(line: str) -> Measurement | None:
    table = json.loads(line)
    return None if table is None else from_json(Measurement, table)


def dump_measurement(measurement: Measurement | None) -> str:
    if measurement is None:
        return "null"
    return json.dumps({k: v for k, v in to_json(measurement).items() if v is not None})


def read_measurements(path: Path) -> list[Measurement]:
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [from_json(Measurement, json.loads(line)) for line in lines]


def measure_missing(trials: Sequence[Trial], path: Path, options: argparse.Namespace) -> None:
    """Measure what has no line yet, until the time is over; a failed trial counts as measured."""
    deadline = time.time() + 60 * options.minutes
    done = [each.trial for each in read_measurements(path)]
    missing = [trial for trial in trials if trial not in done]
    one = measure if options.parallel == 1 else measure_apart

    def record(trial: Trial) -> None:
        measurement = one(trial, options.runs, deadline) if time.time() < deadline else None
        if measurement is None:
            print(f"not finished: {trial.name}, fold {trial.fold}; run the same command again")
            return
        with path.open("a", encoding="utf-8") as file:
            file.write(dump_measurement(measurement) + "\n")

    with ThreadPoolExecutor(options.parallel) as pool:
        list(pool.map(record, missing))


def render_page(measurements: Sequence[Measurement]) -> str:
    """One table per data set, method and number of steps."""
    parts = [INTRODUCTION]
    for group in sorted({each.group for each in measurements}):
        data, labels, algorithm, steps = group
        members = [each for each in measurements if each.group == group]
        devices = ", ".join(sorted({each.device for each in members if each.device}))
        names = dict.fromkeys(each.name for each in members)
        parts += [
            "",
            f"## {data}, {labels} labels, {algorithm}, {steps:,} steps",
            "",
            *([f"{devices}.", ""] if devices else []),
            *HEADINGS,
            *(render_row(name, members) for name in names),
        ]
    return "\n".join(parts) + "\n"


def render_row(name: str, members: Sequence[Measurement]) -> str:
    own = sorted((each for each in members if each.name == name), key=lambda each: each.fold)
    failures = [each.failure for each in own if each.failure]
    good = [each for each in own if each.hidden is not None]
    folds = ", ".join(str(each.fold) for each in own)
    if failures or not good:
        return f"| {name} | {folds} | failed: {'; '.join(map(str, failures))} | - | - | - |"
    paper = {each.fold: each.hidden for each in members if each.name == "paper"}
    pairs = [(each.hidden, paper.get(each.fold)) for each in good]
    differences = [100 * (x - y) for x, y in pairs if x is not None and y is not None]
    difference = f"{mean(differences):+.2f}" if differences else "-"
    cells = [
        name,
        folds,
        percent([each.hidden for each in good]),
        difference,
        percent([each.test for each in good]),
        f"{mean(each.minutes or 0.0 for each in good):.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def percent(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{100 * mean(known):.2f}" if known else "-"


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--labels", type=int, default=250)
    parser.add_argument("--algorithm", default="fullflex")
    parser.add_argument("--steps", type=int, default=16384)
    parser.add_argument("--folds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--only", nargs="+", default=list(TRIALS), choices=TRIALS, metavar="TRIAL")
    parser.add_argument("--minutes", type=float, default=28.0, help="then trainings pause")
    parser.add_argument("--parallel", type=int, default=1, help="trainings at a time")
    parser.add_argument("--runs", type=Path, default=Path("runs/recipe"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--task", help=argparse.SUPPRESS)  # of a process that measures one trial
    return parser.parse_args(argv)


def list_trials(options: argparse.Namespace) -> list[Trial]:
    """Fold by fold, so that a first answer for every trial comes early."""
    return [
        Trial(
            data=options.data,
            labels=options.labels,
            algorithm=options.algorithm,
            steps=options.steps,
            fold=fold,
            name=name,
            settings=" ".join(TRIALS[name]),
        )
        for fold in options.folds
        for name in options.only
    ]


def main(argv: list[str] | None = None) -> None:
    options = parse_arguments(argv)
    if options.task:
        task = json.loads(options.task)
        trial = Trial(**task["trial"])
        print(dump_measurement(measure(trial, Path(task["runs"]), task["deadline"])))
        return
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / "recipe.jsonl"
    measure_missing(list_trials(options), path, options)
    page = render_page(read_measurements(path))
    (options.results / "recipe.md").write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
