"""A run that has started: watched record by record, stopped, finished."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from fullmatch import distributed
from fullmatch.api.finished_run import FinishedRun
from fullmatch.api.finishing import ShowResult, finish_run, show_nothing
from fullmatch.api.outcome import describe_record, make_outcome
from fullmatch.config import ExperimentConfig
from fullmatch.display.progress import pausing_on_interrupt, train_with_progress
from fullmatch.display.terminal import print_note, showing
from fullmatch.errors import UserError
from fullmatch.experiment.nan_recovery import train_with_rollback
from fullmatch.experiment.run import Run
from fullmatch.tracking.group import TrackerGroup
from fullmatch.tracking.tracker import flatten_settings
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
        if distributed.is_first():
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
            if not distributed.on_first(lambda: folder.finished):
                train_with_progress(self.run, iter(self.__next__, None))
            finish_run(folder, self.run.source, show_result)
            if distributed.is_first():
                self.trackers.finish(lambda: make_outcome(folder))
        return FinishedRun(self.folder)
