"""`fullmatch train`: from data to a run folder."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fullmatch.cli.parameters import Settings, Whole


def train(
    data: str | None = None,
    *,
    algorithm: str | None = None,
    model: str | None = None,
    weights: Path | None = None,
    labels: Whole = None,
    steps: Whole = None,
    seed: Whole = None,
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
        See: fullmatch list models. [default: what suits the data and this machine]
    weights
        A file to start from, safetensors or a PyTorch state dict, for the network of --model.
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
    from_
        A finished run whose weights to start from, such as one with fewer labels.
    minutes
        How long your own pictures may take, all told. [default: 10]
    """
    from fullmatch.cli.commands.report import report_beside
    from fullmatch.cli.progress import follow, follow_baseline
    from fullmatch.cli.terminal import say, show_result
    from fullmatch.data import DATASETS
    from fullmatch.errors import UserError
    from fullmatch.experiment import settings
    from fullmatch.experiment.estimate import honest
    from fullmatch.experiment.planning import glimpse, plan
    from fullmatch.experiment.run import start
    from fullmatch.storage.run_folder import RunFolder

    if minutes is not None and (data is None or data in DATASETS or config is not None):
        raise UserError("--minutes plans a run on your own pictures; use --steps here")
    if minutes is not None and steps is not None:
        raise UserError("--minutes and --steps both say how long to train; give one of them")
    preset, notes = None, tuple[str, ...]()
    own = Path(data).expanduser() if data is not None and data not in DATASETS else None
    if own is not None and config is None and own.exists():
        network = model
        if from_ is not None and model is None and weights is None:
            network = settings.config_of(RunFolder.existing(from_)).model.name
        found = plan(
            glimpse(own),
            str(data),
            algorithm=algorithm or "fullmatch",
            minutes=minutes,
            steps=steps,
            model=network,
            weights=weights,
        )
        preset, notes = found.config, found.notes
    chosen = settings.resolve(
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
        preset=preset,
        assignments=set_ or (),
    )
    name = f"{Path(chosen.data.name).resolve().stem}-{settings.display_name(chosen.algorithm)}"
    folder = RunFolder.planned(name, out)
    if chosen.data.name not in DATASETS and folder.path.resolve().is_relative_to(
        Path(chosen.data.name).expanduser().resolve()
    ):
        raise UserError(
            f"{folder.path} would lie among your pictures, which are left alone; "
            "name a folder elsewhere with --out"
        )
    run = start(chosen, folder)
    for note in notes:  # only now, since whoever made a mistake would look for it among them
        say(note)
    follow(run)
    if chosen.baseline:
        follow_baseline(run.folder, run.source)
    honest(run.folder, run.source)
    show_result(run.folder)
    if not run.dataset.benchmark:
        report_beside(run.folder.path, run.dataset)
