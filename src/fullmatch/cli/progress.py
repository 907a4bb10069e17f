"""Training while a person watches: a bar, and an interrupt that loses nothing."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fullmatch.cli.terminal import ProgressBar, say
from fullmatch.data import Source
from fullmatch.experiment.baseline import baseline_of, compare
from fullmatch.experiment.nan_recovery import guarded
from fullmatch.experiment.run import Run
from fullmatch.experiment.settings import config_of
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.health import Finding

INTERRUPTED = 130  # the exit code of a program stopped by Ctrl-C


def follow_baseline(folder: RunFolder, source: Source | None = None) -> None:
    """Train the same network on the labels alone, beside the run it is compared with."""
    run = baseline_of(folder, source)
    warm = config_of(folder).model.start is not None
    if run is not None:
        print(f"\nThe same network on the labels alone{', started anew' * warm}:")
        follow(run)
    compare(folder)


def follow(run: Run) -> None:
    """Train while drawing a bar; an interrupt saves and says how to go on."""
    for note in (*run.notes, *run.recovery):
        say(note)
    with interrupts(run), ProgressBar(run) as bar:
        for record in guarded(run):
            bar.show(record)
            for finding in run.watch.news({"step": record.step, **record.metrics}):
                say(finding.sentence())
            if record.paused:
                bar.stop()
                print(f"Stopped and saved at step {record.step}. Go on with:")
                print(f"  {run.folder.resume_command}")
                raise SystemExit(INTERRUPTED)
    for finding in run.watch.untold([Finding(**found) for found in run.result["health"]]):
        say(finding.sentence())


@contextmanager
def interrupts(run: Run) -> Iterator[None]:
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
