"""`fullmatch train`: from data to a run folder."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fullmatch.commands.parameters import Settings, Whole


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
    from fullmatch import settings
    from fullmatch.data import DATASETS
    from fullmatch.display import say, show_result
    from fullmatch.errors import UserError
    from fullmatch.experiment import start
    from fullmatch.honest import honest
    from fullmatch.planning import glimpse, plan
    from fullmatch.runfolder import RunFolder
    from fullmatch.watch import follow, follow_baseline

    if minutes is not None and (data is None or data in DATASETS or config is not None):
        raise UserError("--minutes plans a run on your own pictures; use --steps here")
    preset = None
    if data is not None and config is None and data not in DATASETS and Path(data).exists():
        found = plan(glimpse(Path(data)), data, algorithm=algorithm or "fullmatch", minutes=minutes)
        for note in found.notes:
            say(note)
        preset = found.config
    chosen = settings.resolve(
        file=config,
        data=data,
        algorithm=algorithm,
        labels=labels,
        steps=steps,
        seed=seed,
        baseline=baseline,
        start=from_,
        preset=preset,
        assignments=set_ or (),
    )
    name = f"{Path(chosen.data.name).resolve().stem}-{settings.display_name(chosen.algorithm)}"
    run = start(chosen, RunFolder.planned(name, out))
    follow(run)
    if chosen.baseline:
        follow_baseline(run.folder)
    honest(run.folder)
    show_result(run.folder)
