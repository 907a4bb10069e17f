"""A search with Optuna, whose study is a file that all processes of a sweep share.

The caller holds the lock of the sweep's folder around every call.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from fullmatch.errors import UserError
from fullmatch.files.reading import read_bounded
from fullmatch.storage.atomic import explained_errors
from fullmatch.storage.json_files import DamagedFile
from fullmatch.sweeps.space import Choice, SweepPoint, ValueList

DIGITS = 6  # of a suggested number; more would only be hard to read


class HeldLock:
    """The lock that Optuna asks for; that of the sweep's folder is held, and ends with its process.

    Optuna's own would outlive a process that is killed.
    """

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


class OptunaSearch:
    """Combinations of values as trials of a study."""

    def __init__(self, journal: Path, choices: Sequence[Choice], integers: Sequence[str]) -> None:
        self.journal, self.choices = journal, tuple(choices)
        self.integers = frozenset(integers)  # names of settings that are whole numbers
        self.optuna = import_optuna()

    def open_study(self, seed: int = 0) -> Any:
        """The study in the file; a sampler with this seed makes its suggestions."""
        try:
            with explained_errors(self.journal):
                cut_torn_line(self.journal)
                return self.replay(seed)
        except UserError:
            raise
        except Exception as error:  # Optuna takes what is in the file as it is
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            advice = "restore it, or start the sweep again with another --out"
            raise DamagedFile(self.journal, reason, advice) from None

    def replay(self, seed: int) -> Any:
        journal = import_module("optuna.storages.journal")
        backend = journal.JournalFileBackend(str(self.journal), lock_obj=HeldLock())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about features that may change
            return self.optuna.create_study(
                storage=self.optuna.storages.JournalStorage(backend),
                sampler=self.optuna.samplers.TPESampler(seed=seed),
                study_name="fullmatch",
                direction="maximize",
                load_if_exists=True,
            )

    def points(self) -> list[SweepPoint]:
        """All trials so far, in order."""
        return [self.describe(trial) for trial in self.whole_trials(self.open_study())]

    def suggest(self) -> SweepPoint:
        """One more trial. The suggestion depends on what is finished and on how many there are.

        So a search that was killed goes on as if it had not been.
        """
        count = len(self.whole_trials(self.open_study()))
        trial = self.open_study(seed=count).ask(dict(map(self.distribution, self.choices)))
        return self.describe(trial)

    def record(self, mean_score: Callable[[SweepPoint], float | None]) -> None:
        """Store the means of the trials that have become complete."""
        study = self.open_study()
        for trial in self.whole_trials(study):
            if trial.state.is_finished():
                continue
            value = mean_score(self.describe(trial))
            if value is not None:
                study.tell(trial.number, value)

    def whole_trials(self, study: Any) -> list[Any]:
        """Trials that have all their values; a process killed while asking leaves one without."""
        names = {choice.name for choice in self.choices}
        return [trial for trial in study.get_trials(deepcopy=False) if names <= {*trial.params}]

    def describe(self, trial: Any) -> SweepPoint:
        values = tuple((choice.name, str(trial.params[choice.name])) for choice in self.choices)
        return SweepPoint(trial.number, tuple((name, shorten(value)) for name, value in values))

    def distribution(self, choice: Choice) -> tuple[str, Any]:
        distributions = self.optuna.distributions
        if isinstance(choice, ValueList):
            return choice.name, distributions.CategoricalDistribution(choice.values)
        if choice.name in self.integers:
            low, high = int(choice.low), int(choice.high)
            return choice.name, distributions.IntDistribution(low, high, log=choice.log)
        low_end, high_end = float(choice.low), float(choice.high)
        return choice.name, distributions.FloatDistribution(low_end, high_end, log=choice.log)


def shorten(value: str) -> str:
    """A number with few digits; any other text as it is."""
    try:
        return value if value.lstrip("+-").isdigit() else f"{float(value):.{DIGITS}g}"
    except ValueError:
        return value


def cut_torn_line(journal: Path) -> None:
    """Remove what a process that was killed while writing has left of its line."""
    if not journal.exists():
        return
    content = read_bounded(journal)
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(journal, whole)  # writing it anew could be cut off too


def import_optuna() -> Any:
    try:
        optuna = import_module("optuna")
    except ImportError:
        raise UserError(
            "--trials searches with Optuna; run pip install 'fullmatch[sweep]', or list values"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
