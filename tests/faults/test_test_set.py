"""The test set of the user's own pictures is predicted once, after the last step."""

from pathlib import Path
from typing import Any

from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.storage.run_folder import RunFolder
from tests.small_pictures import write_pets
from tests.small_runs import AWKWARD, STEPS, TINY, finish


def test_the_test_set_is_predicted_once_after_training(tmp_path: Path) -> None:
    settings = (*TINY, *AWKWARD, "model.name=wrn-10-1")
    config = resolve(data=str(write_pets(tmp_path)), assignments=settings)
    run = start(config, RunFolder.planned("pets", tmp_path / "run"))
    predict, steps = run.predict_test, list[int]()

    def watched() -> Any:
        steps.append(run.state.step)
        return predict()

    run.predict_test = watched  # type: ignore[method-assign]
    finish(run)
    assert steps == [STEPS]
