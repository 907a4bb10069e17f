"""Two trained runs of a few steps, made once per process; not to be changed."""

from functools import cache
from pathlib import Path

from fullmatch.experiment.baseline import compare_with_baseline, prepare_baseline
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.storage.run_folder import RunFolder
from tests.served import shared_folder
from tests.small_pictures import write_pets
from tests.small_runs import AWKWARD, TINY, finish


@cache
def train_digits() -> Path:
    """A benchmark with its labels-only baseline."""
    config = resolve(labels=40, baseline=True, assignments=(*TINY, *AWKWARD))
    path = shared_folder() / "digits-with-baseline"
    folder = finish(start(config, RunFolder.planned("digits", path))).folder
    baseline = prepare_baseline(folder)
    assert baseline is not None
    finish(baseline)
    compare_with_baseline(folder)
    return path


@cache
def train_pets() -> Path:
    """A user's own pictures, with test pictures."""
    place = shared_folder() / "pets-with-test"
    config = resolve(
        data=str(write_pets(place)), assignments=(*TINY, *AWKWARD, "model.name=wrn-10-1")
    )
    return finish(start(config, RunFolder.planned("pets", place / "run"))).folder.path
