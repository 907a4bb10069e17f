"""`fullmatch train`: from data to a run folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fullmatch.cli.parameters import Integer, Settings
from fullmatch.errors import UserError

if TYPE_CHECKING:
    from fullmatch.config import ExperimentConfig
    from fullmatch.experiment.planning import TrainingPlan
    from fullmatch.storage.run_folder import RunFolder


def train(
    data: str | None = None,
    *,
    algorithm: str | None = None,
    model: str | None = None,
    weights: Path | None = None,
    labels: Integer = None,
    steps: Integer = None,
    seed: Integer = None,
    set_: Settings = None,
    config: Path | None = None,
    out: Path | None = None,
    baseline: bool | None = None,
    from_: Annotated[Path | None, Parameter(name="--from")] = None,
    minutes: float | None = None,
) -> None:
    """Train a classifier.

    Parameters
    ----------
    data
        A data set by name (see: fullmatch list datasets), or your pictures: a folder with
        labeled/CLASS/* and unlabeled/*, a CSV with path,label, or an NPZ. [default: digits]
    algorithm
        See: fullmatch list algorithms. [default: fullmatch]
    model
        See: fullmatch list models. [default: chosen for the data and this machine]
    weights
        A file of weights to start from, safetensors or a PyTorch state dict, that fits --model.
    labels
        How many labels of a benchmark to use; the others are hidden.
    steps
        Number of training steps.
    seed
        Seed for all random numbers: the choice of labels, the initial weights, training.
        [default: 0]
    set_
        Any setting, as a.b=value, such as training.batch=32; can be repeated.
    config
        A TOML file of settings, such as the config.toml of another run.
    out
        Output folder; it must not exist. [default: the next free one under runs/]
    baseline
        Also train the same network on the labels only, and compare.
    from_
        Finished run to take the initial weights from, such as one with fewer labels.
    minutes
        Time limit for your own pictures, for training and measuring together. [default: 10]
    """
    from fullmatch.cli.finish import finish_run
    from fullmatch.cli.progress import feature_progress, train_with_progress
    from fullmatch.cli.terminal import print_note, show_strategies
    from fullmatch.experiment.run import start
    from fullmatch.experiment.settings import resolve
    from fullmatch.experiment.strategies import choose_strategy

    check_flags(data, steps, minutes, config)
    plan = None
    if config is None:
        network = model or network_to_continue(from_, weights)
        plan = plan_own_pictures(data, algorithm, network, weights, steps, minutes)
    settings = resolve(
        file=config,
        data=data,
        algorithm=algorithm,
        labels=labels,
        steps=steps,
        seed=seed,
        baseline=baseline,
        start=from_,
        model=model,
        weights=weights,
        preset=plan.config if plan else None,
        assignments=set_ or (),
    )
    compare = plan is not None and plan.compare_strategies and settings.model.body == "frozen"
    folder = choose_folder(settings, out)
    with feature_progress(settings) as options:
        run = start(settings, folder, options=options, choose=choose_strategy if compare else None)
    for note in plan.notes if plan else ():  # only now, so that an error stands by itself
        print_note(note)
    show_strategies(run.strategies)
    train_with_progress(run)
    finish_run(run.folder, run.source)


def check_flags(
    data: str | None, steps: int | None, minutes: float | None, config: Path | None
) -> None:
    """`UserError` for flags that do not go together."""
    if minutes is None:
        return
    if own_pictures(data) is None or config is not None:
        raise UserError("--minutes plans a run on your own pictures; use --steps here")
    if steps is not None:
        raise UserError("--minutes and --steps both limit the training; give one of them")


def own_pictures(data: str | None) -> Path | None:
    """The path of the user's own pictures; None for a benchmark."""
    from fullmatch.data import DATASETS

    return None if data is None or data in DATASETS else Path(data).expanduser()


def network_to_continue(run: Path | None, weights: Path | None) -> str | None:
    """The network of the run to start from; None without such a run."""
    from fullmatch.experiment.settings import read_config
    from fullmatch.storage.run_folder import RunFolder

    if run is None or weights is not None:
        return None
    return read_config(RunFolder.existing(run)).model.name


def plan_own_pictures(
    data: str | None,
    algorithm: str | None,
    model: str | None,
    weights: Path | None,
    steps: int | None,
    minutes: float | None,
) -> "TrainingPlan | None":
    """Settings that suit the user's own pictures and this machine; None for a benchmark."""
    from fullmatch.experiment.planning import PlanOptions, make_plan
    from fullmatch.experiment.source_scan import scan_source

    path = own_pictures(data)
    if path is None or not path.exists():  # loading it will say that it does not exist
        return None
    options = PlanOptions(
        algorithm=algorithm or "fullmatch",
        minutes=minutes,
        steps=steps,
        model=model,
        weights=weights,
    )
    return make_plan(scan_source(path), str(data), options)


def choose_folder(settings: "ExperimentConfig", out: Path | None) -> "RunFolder":
    """The folder of the new run, which is never among the user's pictures."""
    from fullmatch.experiment.settings import display_name
    from fullmatch.storage.run_folder import RunFolder

    data = settings.data.name
    name = f"{Path(data).resolve().stem}-{display_name(settings.algorithm)}"
    folder = RunFolder.planned(name, out)
    pictures = own_pictures(data)
    if pictures is not None and folder.path.resolve().is_relative_to(pictures.resolve()):
        raise UserError(
            f"{folder.path} would be among your pictures, where nothing is written; "
            "name a folder elsewhere with --out"
        )
    return folder
