"""Train: in one call, or record by record."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from os import PathLike, fspath
from pathlib import Path

from fullmatch.api.finished_run import FinishedRun
from fullmatch.api.finishing import (
    ShowResult,
    finish_run,
    has_work_left,
    lacks_baseline,
    show_nothing,
)
from fullmatch.api.outcome import describe_record, make_outcome
from fullmatch.api.starting import (
    SettingsInput,
    check_limits,
    choose_folder,
    continue_run,
    network_to_continue,
    plan_own_pictures,
    start_run,
    to_assignments,
)
from fullmatch.config import ExperimentConfig
from fullmatch.display.progress import pausing_on_interrupt, train_with_progress
from fullmatch.display.terminal import print_line, print_note, showing
from fullmatch.errors import UserError
from fullmatch.experiment.nan_recovery import train_with_rollback
from fullmatch.experiment.plan_types import PlanOptions
from fullmatch.experiment.repair import prepare_repairs
from fullmatch.experiment.run import Run
from fullmatch.experiment.settings import read_config, resolve
from fullmatch.inference.trained_run import require_data
from fullmatch.storage.run_folder import RunFolder
from fullmatch.tracking.group import TrackerGroup, open_trackers, read_identities
from fullmatch.tracking.tracker import flatten_settings
from fullmatch.training.stopping import TimeLimit
from fullmatch.training.trainer import Record


class StopRequest:
    """A stopping rule that a caller sets."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def reason_to_stop(self, record: Record) -> str | None:
        return self.reason


class Training(Iterator[Record]):
    """A run that has started: iterate over its records to watch it, then `finish` it.

    Leaving the loop, by `break`, an exception or an interrupt, saves what was trained. `finish`
    trains what is left; after an interrupt, and in another process, `fullmatch.resume` does.
    """

    def __init__(
        self, run: Run, *, progress: bool = True, trackers: TrackerGroup | None = None
    ) -> None:
        self.run, self.progress = run, progress
        self.trackers = trackers or TrackerGroup({}, print_note)
        self.trackers.begin(run.folder.path, flatten_settings(run.table()), run.state.step)
        self.request = StopRequest()
        run.stopping_rules.append(self.request)
        self.records = train_with_rollback(run)
        self.pausing = False  # on request
        self.ended_early = False  # paused, or failed

    def __iter__(self) -> Iterator[Record]:
        """The records from here on; an interrupt is raised after the current step."""
        try:
            while True:
                with pausing_on_interrupt(self.run):
                    record = next(self, None)
                if record is None:
                    return
                if record.paused and not self.pausing:
                    raise KeyboardInterrupt
                yield record
        except GeneratorExit:  # the loop was left
            if not sys.is_finalizing():
                self.run.save()
            raise

    def __next__(self) -> Record:
        try:
            record = next(self.records)
        except StopIteration:
            raise
        except (Exception, KeyboardInterrupt):
            self.ended_early = True
            raise
        self.trackers.log(describe_record(self.run, record))
        if record.paused:
            self.ended_early = True
            self.trackers.close()
            self.records.close()  # the folder is free for others
        return record

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.run.folder.path

    @property
    def config(self) -> ExperimentConfig:
        """The settings of the run."""
        return self.run.config

    def stop(self, reason: str = "the caller asked for it") -> None:
        """End the training at the next record; the model is what it is then."""
        self.request.reason = reason

    def pause(self) -> None:
        """Save after the current step, and end the loop; `fullmatch.resume` continues."""
        self.pausing = self.run.trainer.stop = True

    def finish(self, show_result: ShowResult = show_nothing) -> FinishedRun:
        """Train what is left, then measure and report, as `fullmatch.train` does."""
        if self.ended_early:
            raise UserError(
                f"{self.folder} was stopped before its end; continue it with: "
                f"fullmatch.resume({str(self.folder)!r})"
            )
        folder = self.run.folder
        with showing(self.progress), closing(self.trackers):
            if not folder.finished:
                train_with_progress(self.run, iter(self.__next__, None))
            finish_run(folder, self.run.source, show_result)
            self.trackers.finish(lambda: make_outcome(folder))
        return FinishedRun(self.folder)


def start(
    data: str | PathLike[str] | None = None,
    *,
    algorithm: str | None = None,
    model: str | None = None,
    weights: str | PathLike[str] | None = None,
    labels: int | None = None,
    steps: int | None = None,
    budget: str | None = None,
    seed: int | None = None,
    settings: SettingsInput = (),
    config: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    baseline: bool | None = None,
    from_run: str | PathLike[str] | None = None,
    minutes: float | None = None,
    download: bool = False,
    track: str | Sequence[str] = (),
    progress: bool = True,
) -> Training:
    """Start a run, and return it before its first step; the parameters are those of `train`.

    Example::

        training = fullmatch.start("digits", labels=40, steps=1000)
        for record in training:
            if record.metrics.get("loss", 1.0) < 0.1:
                training.stop()
        run = training.finish()
    """
    name = None if data is None else fspath(data)
    file, place, weights_file, start_folder = map(as_path, (config, out, weights, from_run))
    check_limits(name, steps, minutes, file)
    if minutes is not None and budget is not None:
        raise UserError("--minutes plans a run by itself; leave --budget out")
    trackers = open_trackers(track, print_note)
    options = PlanOptions(
        algorithm=algorithm or "fullmatch",
        minutes=minutes,
        steps=steps,
        model=model or network_to_continue(start_folder, weights_file),
        weights=weights_file,
        download=download,
    )
    limit = TimeLimit(options.seconds)
    with showing(progress):
        plan = plan_own_pictures(name, options) if file is None and budget is None else None
        resolved = resolve(
            file=file,
            data=name,
            algorithm=algorithm,
            labels=labels,
            steps=steps,
            budget=budget,
            seed=seed,
            baseline=baseline,
            start=start_folder,
            model=model,
            weights=weights_file,
            preset=plan.config if plan else None,
            assignments=to_assignments(settings),
        )
        run = start_run(resolved, choose_folder(resolved, place), plan, limit)
        return Training(run, progress=progress, trackers=trackers)


def train(
    data: str | PathLike[str] | None = None,
    *,
    algorithm: str | None = None,
    model: str | None = None,
    weights: str | PathLike[str] | None = None,
    labels: int | None = None,
    steps: int | None = None,
    budget: str | None = None,
    seed: int | None = None,
    settings: SettingsInput = (),
    config: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    baseline: bool | None = None,
    from_run: str | PathLike[str] | None = None,
    minutes: float | None = None,
    download: bool = False,
    track: str | Sequence[str] = (),
    progress: bool = True,
) -> FinishedRun:
    """Train a classifier, measure it, and return the finished run.

    Example::

        run = fullmatch.train("digits", labels=40, steps=100)
        print(run.accuracy)

    Parameters
    ----------
    data
        A data set by name, such as "digits" (the default), or your pictures: a folder with
        labeled/CLASS/* and unlabeled/*, a CSV with path,label, or an NPZ.
    algorithm
        Its name; "fullmatch" by default.
    model
        The network; by default it is chosen for the data and this machine.
    weights
        A file of weights to start from, that fits `model`.
    labels
        How many labels of a benchmark to use; the others are hidden.
    steps
        Number of training steps.
    budget
        Settings of a benchmark: "paper", the default, "fast", with fewer and cheaper steps, or
        "usb", which fine-tune a pretrained transformer.
    seed
        Of all random numbers; 0 by default.
    settings
        Any settings, as in {"training.batch": 32} or ["training.batch=32"].
    config
        A TOML file of settings, such as the config.toml of another run.
    out
        The run folder, which must not exist; by default the next free one under runs/.
    baseline
        Also train the same network on the labels only, and compare.
    from_run
        A finished run to take the initial weights from.
    minutes
        Time limit for your own pictures, for training and measuring together; 10 by default.
    download
        Fetch the best pretrained weights for your own pictures, unless they are on this machine.
    track
        Trackers to log to, such as "tensorboard,mlflow".
    progress
        Draw bars and print notes.
    """
    training = start(
        data,
        algorithm=algorithm,
        model=model,
        weights=weights,
        labels=labels,
        steps=steps,
        budget=budget,
        seed=seed,
        settings=settings,
        config=config,
        out=out,
        baseline=baseline,
        from_run=from_run,
        minutes=minutes,
        download=download,
        track=track,
        progress=progress,
    )
    return training.finish()


def resume(
    run: str | PathLike[str],
    *,
    finish: bool = False,
    progress: bool = True,
    show_result: ShowResult = show_nothing,
) -> FinishedRun:
    """Continue a run that was stopped or killed; on a CPU the result is the same, bit for bit.

    With `finish`, training ends at the newest checkpoint, and the run is measured and reported.
    """
    folder = RunFolder.existing(Path(run))
    with showing(progress):
        for note in prepare_repairs(folder):
            print_line(note)
    if has_work_left(folder):
        require_data(read_config(folder).data.name, folder.path)
    with showing(progress):
        if not folder.finished:
            trackers = open_trackers(list(read_identities(folder.path)), print_note)
            training = Training(
                continue_run(folder, finish=finish), progress=progress, trackers=trackers
            )
            return training.finish(show_result)
        if folder.read_result().lacks_estimate:
            print_line(f"The model of {folder.path} is trained; its accuracy is not estimated yet.")
        elif not lacks_baseline(folder):
            print_line(f"{folder.path} is finished already.")
        finish_run(folder, None, show_result)
    return FinishedRun(folder.path)


def as_path(path: str | PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)
