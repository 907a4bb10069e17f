"""`fullmatch train`: from data to a run folder."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from fullmatch.cli.parameters import Integer, Settings


def train(
    data: str | None = None,
    *,
    algorithm: str | None = None,
    model: str | None = None,
    weights: Path | None = None,
    labels: Integer = None,
    steps: Integer = None,
    budget: Literal["paper", "fast", "usb"] | None = None,
    seed: Integer = None,
    set_: Settings = None,
    config: Path | None = None,
    out: Path | None = None,
    baseline: bool | None = None,
    from_: Annotated[Path | None, Parameter(name="--from")] = None,
    minutes: float | None = None,
    download: bool = False,
    track: str = "",
) -> None:
    """Train a classifier.

    Parameters
    ----------
    data
        A data set by name (see: fullmatch list datasets), or your pictures: a folder with
        labeled/CLASS/* and unlabeled/*, a CSV with path,label, an NPZ, a Parquet or Arrow file,
        tar shards such as 'shards-{000..099}.tar', or hf:PATH. [default: digits]
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
    budget
        Settings of a benchmark: the paper's, the fast ones, with fewer and cheaper steps, or USB's,
        which fine-tune a pretrained transformer. [default: paper]
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
    download
        Fetch the best pretrained weights for your own pictures, unless they are on this machine.
    track
        Trackers to log to, joined by commas: tensorboard, wandb, mlflow.
    """
    from fullmatch.api.training import start
    from fullmatch.display.terminal import show_result

    training = start(
        data,
        algorithm=algorithm,
        model=model,
        weights=weights,
        labels=labels,
        steps=steps,
        budget=budget,
        seed=seed,
        settings=set_ or (),
        config=config,
        out=out,
        baseline=baseline,
        from_run=from_,
        minutes=minutes,
        download=download,
        track=track,
    )
    training.finish(show_result)
