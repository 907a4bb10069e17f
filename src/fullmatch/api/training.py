"""Train: in one call, or record by record."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from os import PathLike, fspath
from pathlib import Path

from fullmatch import distributed
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
    continue_restarted,
    continue_run,
    find_restarted,
    network_to_continue,
    plan_own_pictures,
    preset_of_restarted,
    start_run,
    to_assignments,
)
from fullmatch.config import ExperimentConfig
from fullmatch.display.progress import train_with_progress
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

    Leaving the loop loses nothing: `finish` trains what is left. A process that ends meanwhile
    leaves a folder that `fullmatch.resume` continues.
    """

    def __init__(
        self, run: Run, *, progress: bool = True, trackers: TrackerGroup | None = None
    ) -> None:
        self.run, self.progress = run, progress
        self.trackers = trackers or TrackerGroup({}, print_note)
        if distributed.is_first():
            self.trackers.begin(run.folder.path, flatten_settings(run.table()), run.state.step)
        self.request = StopRequest()
        run.stopping_rules.append(self.request)
        self.records = train_with_rollback(run)
        self.paused = False

    def __next__(self) -> Record:
        record = next(self.records)
        self.trackers.log(describe_record(self.run, record))
        self.paused = record.paused
        if self.paused:
            self.trackers.close()
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
        self.run.trainer.stop = True

    def finish(self, show_result: ShowResult = show_nothing) -> FinishedRun:
        """Train what is left, then measure and report, as `fullmatch.train` does."""
        if self.paused:
            raise UserError(
                f"{self.folder} is paused at step {self.run.state.step}; continue it with: "
                f"fullmatch.resume({str(self.folder)!r})"
            )
        folder = self.run.folder
        with showing(self.progress), closing(self.trackers):
            if not distributed.on_first(lambda: folder.finished):
                train_with_progress(self.run, self)
            finish_run(folder, self.run.source, show_result)
            if distributed.is_first():
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
    earlier = find_restarted(place)
    trackers = open_trackers(track if distributed.is_first() else (), print_note)
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
        planned = file is None and budget is None and earlier is None
        plan = distributed.on_first(lambda: plan_own_pictures(name, options) if planned else None)
        preset = plan.config if plan else preset_of_restarted(earlier, name, file)
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
            preset=preset,
            assignments=to_assignments(settings),
        )
        if earlier is None:
            run = start_run(resolved, choose_folder(resolved, place), plan, limit)
        else:
            run = continue_restarted(earlier, resolved)
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
        for note in distributed.on_first(lambda: prepare_repairs(folder)):
            print_line(note)
    if has_work_left(folder):
        require_data(read_config(folder).data.name, folder.path)
    with showing(progress):
        if not folder.finished:
            run_left = continue_run(folder, finish=finish)
            known = list(read_identities(folder.path)) if distributed.is_first() else ()
            trackers = open_trackers(known, print_note)
            training = Training(run_left, progress=progress, trackers=trackers)
            return training.finish(show_result)
        if folder.read_result().lacks_estimate:
            print_line(f"The model of {folder.path} is trained; its accuracy is not estimated yet.")
        elif not lacks_baseline(folder):
            print_line(f"{folder.path} is finished already.")
        finish_run(folder, None, show_result)
    return FinishedRun(folder.path)


def as_path(path: str | PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)
