"""Start a new run in its folder, or resume one from its newest checkpoint."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import tomli_w
import torch

from fullmatch import distributed
from fullmatch.algorithms import name_of
from fullmatch.config import ExperimentConfig, config_table
from fullmatch.core import Task
from fullmatch.data import Source
from fullmatch.errors import UserError
from fullmatch.experiment.feature_pass import PassOptions
from fullmatch.experiment.inputs import (
    RunInputs,
    add_features,
    load_body,
    load_inputs,
    read_inputs,
)
from fullmatch.experiment.run import Run
from fullmatch.experiment.settings import read_config
from fullmatch.experiment.threads import THREADS
from fullmatch.storage.checkpoints import newest_checkpoint
from fullmatch.storage.result import StrategyResult
from fullmatch.storage.run_folder import RunFolder

# Compares strategies to use a frozen body; returns the settings to train with, and all results.
Chooser = Callable[
    [ExperimentConfig, RunInputs, RunFolder], tuple[ExperimentConfig, tuple[StrategyResult, ...]]
]


def start(
    config: ExperimentConfig,
    folder: RunFolder,
    source: Source | None = None,
    accept: Callable[[Run], None] = lambda run: None,
    options: PassOptions = PassOptions(),  # noqa: B008
    choose: Chooser | None = None,
) -> Run:
    """A new run; its folder is made last, so that a wrong setting leaves nothing behind.

    `accept` may refuse what the run is made of before that.
    """
    asked = config  # one process reads before the others, since it may have to download
    config, inputs = distributed.first_then_others(lambda: load_inputs(asked, source))
    if config.model.body != "trained":
        return start_pretrained(config, folder, inputs, accept, options, choose)
    given = folder.is_baseline or distributed.world_size() > 1
    threads = None if given else THREADS.settle(config, inputs.dataset)
    run = Run(folder, config, inputs)
    run.notes += [threads] if threads else []
    accept(run)
    run.folder = distributed.on_first(
        lambda: folder.make(lambda made: write_settings(made, config, inputs))
    )
    return run


def start_pretrained(
    config: ExperimentConfig,
    folder: RunFolder,
    inputs: RunInputs,
    accept: Callable[[Run], None],
    options: PassOptions,
    choose: Chooser | None = None,
) -> Run:
    """A new run on pretrained weights: its folder is made first, and features go there."""
    check_algorithm(config, inputs)
    asked, given = config, inputs  # what follows is done once, and then known to all processes
    body = distributed.first_then_others(lambda: load_body(given, asked))

    def fill(made: RunFolder) -> None:
        write_settings(made, asked, given)
        if choose is not None:
            made.write_strategies(None)  # so that a run stopped before then compares them too

    planned = folder
    folder = distributed.on_first(lambda: planned.make(fill))
    options = replace(options, folder=options.folder or folder.feature_cache)
    try:
        inputs, notes = distributed.first_then_others(
            lambda: add_features(given, asked, options, body)
        )
        if choose is not None:
            config = choose_config(config, inputs, folder, choose)
    except KeyboardInterrupt:  # what is done so far is in the folder, whose number nobody knows yet
        raise KeyboardInterrupt(folder.resume_command) from None
    run = Run(folder, config, inputs)
    run.notes += notes
    accept(run)
    return run


def choose_config(
    config: ExperimentConfig, inputs: RunInputs, folder: RunFolder, choose: Chooser
) -> ExperimentConfig:
    """The settings of the best strategy, which are those of the run from now on."""

    def choose_and_write() -> ExperimentConfig:
        chosen, strategies = choose(config, inputs, folder)
        with folder.writing():
            write_settings(folder, chosen, inputs)
            folder.write_strategies(strategies)
        return chosen

    return distributed.on_first(choose_and_write)


def check_algorithm(config: ExperimentConfig, inputs: RunInputs) -> None:
    """Refuse wrong settings before any work is done."""
    dataset = inputs.dataset
    config.algorithm.build(
        Task(
            num_classes=dataset.num_classes,
            num_labeled=len(dataset.labeled),
            num_unlabeled=len(dataset.unlabeled),
            class_prior=dataset.class_prior,
            image=(2, 1, 1),
            features=2,
            feature_map=(2, 1, 1),
            batch_prior=dataset.batch_prior,
        )
    )


def write_settings(folder: RunFolder, config: ExperimentConfig, inputs: RunInputs) -> None:
    if inputs.split is not None:
        inputs.split.save(folder.split)
    folder.write_text(folder.config, tomli_w.dumps(config_table(config, name_of)))


def resume(
    folder: RunFolder,
    source: Source | None = None,
    options: PassOptions = PassOptions(),  # noqa: B008
    choose: Chooser | None = None,
) -> Run:
    """A run continued from its newest undamaged checkpoint."""
    config = read_config(folder)
    with folder.locked() if distributed.is_first() else nullcontext():
        checkpoint, damaged = newest_checkpoint(folder.checkpoints)
        distributed.require_same({"checkpoints": str(checkpoint and checkpoint.facts.step)})
        if checkpoint is None and (damaged or folder.metrics_size()):
            raise UserError(
                f"{folder.path} has no usable checkpoint "
                f"({'; '.join(damaged) or 'all are missing'}); "
                f"start again with: fullmatch train --config {folder.config} --out NEW"
            )
        if checkpoint is not None:
            torch.set_num_threads(checkpoint.facts.threads)  # sums depend on it
        # A checkpoint holds the trained weights; the file of the initial ones may be gone.
        started = None if checkpoint is None else checkpoint.facts.started
        options = replace(options, folder=options.folder or folder.feature_cache)
        asked = config
        inputs, _ = distributed.first_then_others(
            lambda: add_features(read_inputs(folder, asked, source), asked, options)
        )
        if checkpoint is None and choose is not None and folder.read_strategies() is None:
            config = choose_config(config, inputs, folder, choose)
        run = Run(folder, config, inputs, started)
        run.recovery = damaged
        if checkpoint is None:
            run.recovery.append("it was stopped before anything was saved: starting at step 0")
        else:
            run.restore(checkpoint)
    return run
