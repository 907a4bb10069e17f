"""Rules that end a training before its last step; what was trained until then is kept."""

import time
from dataclasses import dataclass, field
from typing import Protocol

from fullmatch.training.trainer import Record


class StoppingRule(Protocol):
    """Looks at every record of a training."""

    def reason_to_stop(self, record: Record) -> str | None:
        """Why training ends here, in a few words; None: it goes on."""


@dataclass(frozen=True)
class TimeLimit:
    """Stops when a time is over, counted from when the rule was made."""

    seconds: float
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float:
        return self.seconds - (time.monotonic() - self.started)

    def reason_to_stop(self, record: Record) -> str | None:
        minutes = f"{self.seconds / 60:.2g}"
        return f"the time of {minutes} min is over" if self.seconds_left <= 0 else None
