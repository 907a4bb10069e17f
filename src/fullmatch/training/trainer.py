"""The training loop as a generator of records; the caller logs, saves or stops."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch

from fullmatch import distributed
from fullmatch.data.feed import Feed
from fullmatch.storage.result import Scores
from fullmatch.training.randomness import preserve_rng, seed_step
from fullmatch.training.schedule import Schedule
from fullmatch.training.state import TrainState

AGREE_EVERY = 8  # steps after which several processes agree whether to pause


@dataclass(frozen=True)
class Record:
    """What happened since the last record."""

    step: int  # steps done
    metrics: dict[str, float] = field(default_factory=dict)  # empty: nothing to log, only to save
    evaluation: dict[str, Scores] = field(default_factory=dict)  # of student and teacher
    seconds: float = 0.0  # of training since the run started or resumed
    paused: bool = False  # stopped on request; this is the last record


class Trainer:
    """Runs steps at their learning rates; `advance` performs one step."""

    def __init__(
        self,
        state: TrainState,
        feed: Feed,
        advance: Callable[[], None],
        schedule: Schedule,
        *,
        seed: int,
        evaluate: Callable[[], dict[str, Scores]] | None = None,
    ) -> None:
        self.state, self.feed, self.advance = state, feed, advance
        self.schedule, self.seed = schedule, seed
        self.rate = schedule.rate  # may be replaced, to continue after a NaN loss
        self.evaluate = evaluate
        self.stop = False  # set by a signal handler; the loop pauses soon after the current step
        self.seconds = 0.0

    def run(self, until: int) -> Iterator[Record]:
        """Train up to a step; the caller's random state is restored at every record."""
        while self.state.step < until:
            with preserve_rng(self.state.device):
                record = self.next_record(until)
            yield record
            if record.paused:
                return

    def next_record(self, until: int) -> Record:
        state, schedule = self.state, self.schedule
        started = time.perf_counter()
        state.train()
        while not self.pauses():
            self.take_step()
            last = state.step >= until
            due = self.evaluate is not None and (state.step % schedule.evaluate_every == 0 or last)
            if due or last or state.step % schedule.log_every == 0:
                # Read first: this waits for the device, so the time is correct.
                metrics = state.totals.read() | {"rate": self.rate(state.step - 1)}
                self.seconds += time.perf_counter() - started
                scores = self.evaluate() if due and self.evaluate is not None else {}
                return Record(state.step, metrics, scores, self.seconds)
            if state.step % schedule.checkpoint_every == 0:
                break
        if state.device.type == "cuda":
            torch.cuda.synchronize()
        self.seconds += time.perf_counter() - started
        return Record(state.step, seconds=self.seconds, paused=self.pauses())

    def pauses(self) -> bool:
        """Whether to pause here; several processes do if one of them was told to."""
        if distributed.world_size() == 1:
            return self.stop
        if self.state.step % AGREE_EVERY:
            return False
        return bool(distributed.maximum(torch.tensor(float(self.stop))))

    def take_step(self) -> None:
        state = self.state
        self.feed.seek(state.step)
        state.set_rate(self.rate(state.step))
        if self.schedule.ema is not None:
            state.decay.fill_(self.schedule.ema(state.step))
        state.progress.fill_(state.step / self.schedule.steps)
        seed_step(self.seed, state.step, 0, state.device)
        self.advance()
        state.step += 1
