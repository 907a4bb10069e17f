"""Two real runs of a few steps: a benchmark with its baseline, and somebody's own pictures."""

from pathlib import Path

import pytest

from fullmatch.experiment.baseline import baseline_of, compare
from fullmatch.experiment.run import start
from fullmatch.experiment.settings import resolve
from fullmatch.storage.run_folder import RunFolder
from tests.small_pictures import pets_in
from tests.small_runs import AWKWARD, TINY, finish


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("digits") / "run"
    config = resolve(labels=40, baseline=True, assignments=(*TINY, *AWKWARD))
    folder = finish(start(config, RunFolder.planned("digits", path))).folder
    baseline = baseline_of(folder)
    assert baseline is not None
    finish(baseline)
    compare(folder)
    return path


@pytest.fixture(scope="session")
def pets_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pets")
    config = resolve(data=str(pets_in(place)), assignments=(*TINY, *AWKWARD, "model.name=wrn-10-1"))
    return finish(start(config, RunFolder.planned("pets", place / "run"))).folder.path
