"""What a sweep compares runs by: accuracy on held-out labels, never on a user's test pictures."""

from dataclasses import dataclass
from enum import StrEnum

from fullmatch.errors import UserError
from fullmatch.experiment.cross_validation import FoldOptions
from fullmatch.experiment.estimate import NOTHING_HELD_OUT, prepare_validation
from fullmatch.storage.run_folder import RunFolder


class ScoreKind(StrEnum):
    """What settings are chosen by."""

    HELD_OUT = "held-out"
    TEST = "test"

    @property
    def heading(self) -> str:
        """As a table says it."""
        held_out = self is ScoreKind.HELD_OUT
        return "accuracy on held-out labels" if held_out else "test accuracy, chosen on test"


@dataclass(frozen=True, kw_only=True)
class RunScore:
    """The score of a finished run; fractions in [0, 1]."""

    score: float | None  # None where training diverged
    images: int = 0  # that it was measured on
    test: float | None = None  # of a benchmark, for comparison; not used for choosing
    seconds: float = 0.0
    diverged: str = ""  # how


def measure_run(folder: RunFolder, kind: ScoreKind, *, benchmark: bool) -> RunScore:
    """The score of a finished run; held-out labels are predicted by models trained without them.

    Where cross-validation has measured the run already, its estimate is the score.
    """
    result = folder.read_result()
    test = result.teacher.top1 if result.teacher and benchmark else None
    if kind is ScoreKind.TEST:
        images = result.teacher.images if result.teacher else 0
        return RunScore(score=test, images=images, test=test, seconds=result.seconds)
    if result.estimate is not None:
        accuracy, images = result.estimate.accuracy, result.estimate.held_out
        return RunScore(score=accuracy, images=images, test=test, seconds=result.seconds)
    validation = prepare_validation(folder, None, FoldOptions(baseline=False))
    with folder.locked(), folder.writing():
        for _ in validation.run():
            pass
    measured = validation.accuracy()
    if measured is None:
        raise UserError(f"{folder.path}: {NOTHING_HELD_OUT}")
    images = len({at for fold in validation.folds for at in fold.tolist()})
    return RunScore(score=measured.accuracy, images=images, test=test, seconds=result.seconds)
