"""What a plan is made from, and what it says."""

import math
from dataclasses import dataclass
from pathlib import Path

from fullmatch.config import ExperimentConfig
from fullmatch.errors import UserError
from fullmatch.training.stopping import StoppingRule, TimeLimit

MINUTES = 10.0
LATE = 1.2  # times the planned seconds, after which training ends


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What the user has decided; the plan chooses the rest."""

    algorithm: str = "fullmatch"
    minutes: float | None = None
    steps: int | None = None
    model: str | None = None
    weights: Path | None = None
    pretrained: bool = True  # False: never start from weights that are on this machine
    download: bool = False  # fetch the preferred weights if they are not on this machine

    @property
    def seconds(self) -> float:
        """The time for everything."""
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise UserError(f"--minutes is {self.minutes:g}, expected a number above 0")
        return 60 * (MINUTES if self.minutes is None else self.minutes)


@dataclass(frozen=True)
class Strategy:
    """A name that users see, and the settings behind it."""

    name: str
    config: ExperimentConfig
    seconds: float = 0.0  # that the final model and its estimate will take


@dataclass(frozen=True)
class TrainingPlan:
    """Settings for a user's pictures, and how long they will take."""

    config: ExperimentConfig
    seconds: float  # estimated for everything; NaN where nothing was timed
    notes: tuple[str, ...]
    # Measure strategies on held-out labels before training: those of a pretrained network, and
    # `alternatives`.
    compare_strategies: bool = False
    alternatives: tuple[Strategy, ...] = ()
    training_seconds: float = math.inf  # of the final model; NaN where nothing was timed

    def stopping_rules(self) -> list[StoppingRule]:
        """End a training that takes a fifth longer than planned, such as on a busy machine."""
        if not math.isfinite(self.training_seconds):
            return []
        return [TimeLimit(LATE * self.training_seconds)]
