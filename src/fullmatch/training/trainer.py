"""The training loop, as a generator of records: the caller logs, saves, draws, or stops."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch

from fullmatch import distributed
from fullmatch.data.feed import Feed
from fullmatch.evaluation.scores import Scores
from fullmatch.training.randomness import borrowed, seed_step
from fullmatch.training.state import TrainState


@dataclass(frozen=True)
class Record:
    """What happened since the last record."""

    step: int  # steps done
    metrics: dict[str, float] = field(default_factory=dict)  # empty: nothing to log, only to save
    evaluation: dict[str, Scores] = field(default_factory=dict)  # of student and teacher
    seconds: float = 0.0  # of training since the run began or was resumed
    paused: bool = False  # asked to stop; nothing more will come


class Trainer:
    """Knows steps, not algorithms; whatever `advance` does is one step."""

    def __init__(
        self,
        state: TrainState,
        feed: Feed,
        advance: Callable[[], None],
        *,
        rate: Callable[[int], float],
        total: int,
        seed: int,
        log_every: int,
        evaluate_every: int,
        checkpoint_every: int,
        evaluate: Callable[[], dict[str, Scores]] | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        self.state, self.feed, self.advance = state, feed, advance
        self.rate, self.total, self.seed = rate, total, seed
        self.log_every, self.evaluate_every = log_every, evaluate_every
        self.checkpoint_every = checkpoint_every
        self.evaluate = evaluate
        # Tells other processes what is done next, so that they join in.
        self.announce: Callable[[str], None] = announce or (lambda what: None)
        self.stop = False  # set by a signal handler; the loop pauses after the step at hand
        self.seconds = 0.0

    def run(self, until: int) -> Iterator[Record]:
        """Advance to a step, handing the caller's random generator back at every record."""
        while self.state.step < until:
            with borrowed(self.state.device):
                record = self.next_record(until)
            yield record
            if record.paused:
                return

    def next_record(self, until: int) -> Record:
        state = self.state
        started = time.perf_counter()
        state.train()
        while not self.stop:
            self.announce("step")
            self.take_step()
            last = state.step >= until
            due = self.evaluate is not None and (state.step % self.evaluate_every == 0 or last)
            if due or last or state.step % self.log_every == 0:
                # Read first: this waits for the device, so the clock is right.
                self.announce("read")
                metrics = state.totals.read() | {"rate": self.rate(state.step - 1)}
                self.seconds += time.perf_counter() - started
                scores = self.evaluate() if due and self.evaluate is not None else {}
                return Record(state.step, metrics, scores, self.seconds)
            if state.step % self.checkpoint_every == 0:
                break
        if state.device.type == "cuda":
            torch.cuda.synchronize()
        self.seconds += time.perf_counter() - started
        return Record(state.step, seconds=self.seconds, paused=self.stop)

    def take_step(self) -> None:
        """One step, which every process takes at the same time."""
        state = self.state
        self.feed.seek(state.step)
        state.rate.fill_(self.rate(state.step))
        state.progress.fill_(state.step / self.total)
        seed_step(self.seed, state.step, distributed.rank(), state.device)
        with distributed.together():
            self.advance()
        state.step += 1
