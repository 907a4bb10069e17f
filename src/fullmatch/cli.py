"""The command line: thin commands; torch is imported only by those that need it."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

import fullmatch
from fullmatch.errors import UserError

if TYPE_CHECKING:
    from fullmatch.experiment import Run

INTERRUPTED = 130

app = App(
    name="fullmatch",
    version=fullmatch.__version__,
    result_action="return_value",
    help="Semi-supervised image classification: a few labels, many pictures, one classifier.",
)


def whole(_: Any, tokens: Any) -> int:
    """A whole number; left to itself, the parser would round 1.5 to 2."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is no whole number") from None


Settings = Annotated[list[str] | None, Parameter(name="--set", negative=())]
Whole = Annotated[int | None, Parameter(converter=whole)]


@app.command
def train(
    data: str | None = None,
    *,
    algorithm: str | None = None,
    labels: Whole = None,
    steps: Whole = None,
    seed: Whole = None,
    set_: Settings = None,
    config: Path | None = None,
    out: Path | None = None,
    baseline: bool | None = None,
) -> None:
    """Train a classifier.

    Parameters
    ----------
    data
        A data set by name (see: fullmatch list datasets), or your pictures: a folder with
        labeled/CLASS/* and unlabeled/*, a CSV with path,label, or an NPZ. [default: digits]
    algorithm
        See: fullmatch list algorithms. [default: fullmatch]
    labels
        How many labels of a benchmark to use; the rest are hidden.
    steps
        Training steps.
    seed
        Of the labels drawn, the network's start, and every random number. [default: 0]
    set_
        Any setting, as a.b=value, such as training.batch=32; may be repeated.
    config
        A TOML file of settings, such as the config.toml of another run.
    out
        Folder of this run; it must not exist. [default: the next free one under runs/]
    baseline
        Also train the same network on the labels alone, and compare.
    """
    from fullmatch import settings
    from fullmatch.experiment import start
    from fullmatch.runfolder import RunFolder

    chosen = settings.resolve(
        file=config,
        data=data,
        algorithm=algorithm,
        labels=labels,
        steps=steps,
        seed=seed,
        baseline=baseline,
        assignments=set_ or (),
    )
    name = f"{Path(chosen.data.name).resolve().stem}-{settings.display_name(chosen.algorithm)}"
    run = start(chosen, RunFolder.planned(name, out))
    follow(run)
    if chosen.baseline:
        follow_baseline(run.folder)
    summarize(run.folder)


@app.command
def resume(run: Path) -> None:
    """Continue a run that was stopped or killed; the end is the same, bit for bit on a CPU."""
    from fullmatch.experiment import resume as resumed
    from fullmatch.runfolder import RunFolder
    from fullmatch.settings import config_of

    folder = RunFolder.existing(run)
    if folder.result.exists():
        print(f"{run} is finished already.")
    else:
        follow(resumed(folder))
    if config_of(folder).baseline:
        follow_baseline(folder)
    summarize(folder)


@app.command
def evaluate(run: Path, data: str | None = None) -> None:
    """Measure a finished run's model on the test images of its data, or of other data.

    Parameters
    ----------
    run
        A run folder.
    data
        Another data set with the same classes; its test images are used.
    """
    from fullmatch.display import show_scores
    from fullmatch.evaluate import evaluated
    from fullmatch.runfolder import RunFolder

    show_scores(evaluated(RunFolder.existing(run), data))


@app.command(name="list")
def list_(what: Literal["algorithms", "datasets", "models"]) -> None:
    """Say what there is: algorithms, datasets or models."""
    from fullmatch import display

    {
        "algorithms": display.list_algorithms,
        "datasets": display.list_datasets,
        "models": display.list_models,
    }[what]()


def follow_baseline(folder: Any) -> None:
    """Train the same network on the labels alone, beside the run it is compared with."""
    from fullmatch.comparison import baseline_of, compare

    run = baseline_of(folder)
    if run is not None:
        print("\nThe same network on the labels alone:")
        follow(run)
    compare(folder)


def follow(run: "Run") -> None:
    """Train while drawing a bar; an interrupt saves and says how to go on."""
    from fullmatch.display import ProgressBar, say

    for note in (*run.notes, *run.recovery):
        say(note)
    with interrupts(run), ProgressBar(run) as bar:
        for record in run.records():
            bar.show(record)
            if record.paused:
                bar.stop()
                print(f"Stopped and saved at step {record.step}. Go on with:")
                print(f"  {run.folder.resume_command}")
                raise SystemExit(INTERRUPTED)


def summarize(folder: Any) -> None:
    from fullmatch.display import show_result

    show_result(folder)


@contextmanager
def interrupts(run: "Run") -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) lets the step finish and saves; the second stops at once."""

    def ask(number: int, frame: Any) -> None:
        if run.trainer.stop:
            raise KeyboardInterrupt
        run.trainer.stop = True

    before = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(argv: list[str] | None = None) -> None:
    """Every mistake of a user ends in one line and exit code 2."""
    try:
        app(sys.argv[1:] if argv is None else argv, exit_on_error=False, print_error=False)
    except (CycloptsError, UserError) as error:
        print(f"fullmatch: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
