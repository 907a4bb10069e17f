"""All trackers of a run; one in trouble is dropped with a warning, and the run goes on."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from fullmatch.errors import UserError
from fullmatch.storage.json_files import read_json, write_json
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.tracking.tracker import (
    Outcome,
    Setting,
    TrackedRun,
    Tracker,
    flatten_record,
    make_tracker,
)

T = TypeVar("T")
FILE = "tracking.json"  # in the run folder: the identity by which each tracker knows the run


class TrackerGroup:
    """Passes on what happens to every tracker; `warn` gets one line for each that fails."""

    def __init__(self, trackers: Mapping[str, Tracker], warn: Callable[[str], None]) -> None:
        self.trackers, self.warn = dict(trackers), warn

    def begin(self, folder: Path, settings: Mapping[str, Setting], step: int) -> None:
        """Start all trackers; those that the run had before continue."""
        known = read_identities(folder)
        for name in list(self.trackers):
            run = TrackedRun(folder, settings, step, known.get(name, ""))
            if (identity := self.ask(name, partial(begin, run))) is not None:
                known[name] = identity
        if known:
            self.attempt("the run folder", lambda: write_json(folder / FILE, known))

    def log(self, record: LogRecord) -> None:
        if not record.metrics:
            return
        values = flatten_record(record)
        for name in list(self.trackers):
            self.ask(name, lambda tracker: tracker.log(values, record.step))

    def finish(self, outcome: Callable[[], Outcome]) -> None:
        """Hand over the result, which is put together only if somebody wants it."""
        if not self.trackers:
            return
        made = self.attempt("the figures", outcome)
        for name in list(self.trackers):
            if made is not None:
                self.ask(name, lambda tracker: tracker.finish(made))
        self.close()

    def close(self) -> None:
        for name in list(self.trackers):
            self.ask(name, lambda tracker: tracker.close())
        self.trackers.clear()

    def ask(self, name: str, work: Callable[[Tracker], T]) -> T | None:
        tracker = self.trackers[name]
        result = self.attempt(name, lambda: (work(tracker),))
        if result is None:
            self.trackers.pop(name, None)
            return None
        return result[0]

    def attempt(self, name: str, work: Callable[[], T]) -> T | None:
        """The result of the work, or None after a warning."""
        try:
            return work()
        except Exception as error:  # a tracker may raise anything, and training matters more
            reason = " ".join(str(error).split()) or type(error).__name__
            self.warn(f"{name} does not track this run any longer: {reason}")
            return None


def begin(run: TrackedRun, tracker: Tracker) -> str:
    return tracker.begin(run)


def open_trackers(names: str | Sequence[str], warn: Callable[[str], None]) -> TrackerGroup:
    """The trackers of these names, which may be joined by commas."""
    listed = names.split(",") if isinstance(names, str) else names
    chosen = [name.strip() for name in listed if name.strip()]
    return TrackerGroup({name: make_tracker(name) for name in chosen}, warn)


def read_identities(folder: Path) -> dict[str, str]:
    """By which trackers know the run; empty if it has none, or its file is damaged."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        return {str(name): str(identity) for name, identity in read_json(path).items()}
    except (OSError, ValueError, UserError):
        return {}
