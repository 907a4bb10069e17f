"""Sweeps of runs that take a second, and sweeps without any training."""

from pathlib import Path

from fullmatch.experiment.settings import resolve
from fullmatch.sweeps.folder import Sweep, SweepFolder, SweepRequest
from fullmatch.sweeps.score import RunScore, ScoreKind

TINY = ("model.name=wrn-10-1", "training.batch=6", "training.ratio=2")
FLAGS = ["digits", "--labels", "40", "--steps", "6", "--score", "test"] + [
    word for setting in TINY for word in ("--set", setting)
]


def make_sweep(
    path: Path,
    *settings: str,
    seeds: tuple[int, ...] = (0, 1),
    trials: int | None = None,
    score: ScoreKind = ScoreKind.TEST,
) -> Sweep:
    """A sweep whose runs are never trained: tests write their scores."""
    folder = SweepFolder(path)
    request = SweepRequest(
        base={"data": "digits"}, settings=settings, seeds=seeds, trials=trials, score=score
    )
    folder.create(resolve(labels=40, steps=6, assignments=TINY), request)
    return folder.open()


def score_all(sweep: Sweep, accuracies: dict[str, float]) -> None:
    """Do every run that is left; its accuracy is that of its first value, less for later seeds."""
    while True:
        with sweep.claim() as run:
            if run is None:
                return
            accuracy = accuracies[run.point.values[0][1]] - run.seed / 100
            sweep.write_score(run, RunScore(score=accuracy, images=500, test=accuracy))
