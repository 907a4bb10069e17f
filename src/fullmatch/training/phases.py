"""Phases of a training: parts whose steps are all alike, so that one recording serves them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

# Shares of the unlabeled batch. Each one is compiled and recorded separately, hence only three.
SHARES = (0.25, 0.5, 1.0)


class Phase(NamedTuple):
    """What distinguishes the steps of a phase from those of others."""

    unlabeled: float = 1.0  # share of the unlabeled batch
    self_supervised: bool = False


MAIN = Phase()  # the last phase of every training


@dataclass(frozen=True)
class Phases:
    """The phase of every step: a function of the step, so there is nothing to save."""

    steps: int
    curriculum: float | None = None  # None: always the whole unlabeled batch
    self_supervised: float = 0.0  # share of the steps, at the start

    @property
    def start(self) -> int:
        """Steps of the self-supervised start."""
        return round(self.steps * self.self_supervised)

    def at(self, step: int) -> Phase:
        if step < self.start:
            return Phase(self_supervised=True)
        if self.curriculum is None:
            return MAIN
        remaining = max(0, self.steps - step) / (self.steps - self.start)
        # Fast FixMatch's curve from 0 to 1: straight for 0, later and steeper for larger values.
        grown = 1 - remaining / (1 - self.curriculum + self.curriculum * remaining)
        return Phase(next(share for share in SHARES if grown <= share))

    def all(self) -> tuple[Phase, ...]:
        """Every phase that a run may have, in order."""
        start = (Phase(self_supervised=True),) if self.start else ()
        shares = (1.0,) if self.curriculum is None else SHARES
        return (*start, *(Phase(share) for share in shares))


class PhasedStep:
    """Takes the step of the current phase."""

    def __init__(
        self, steps: Mapping[Phase, Callable[[], None]], current: Callable[[], Phase]
    ) -> None:
        self.steps, self.current = steps, current

    def __call__(self) -> None:
        self.steps[self.current()]()
