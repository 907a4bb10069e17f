"""Rules that end a training early; the run keeps what it has."""

from pathlib import Path

import pytest

from fullmatch.api.finishing import has_work_left
from fullmatch.training.stopping import TimeLimit
from fullmatch.training.trainer import Record
from tests.small_runs import begin, config, finish


class AfterStep:
    def __init__(self, step: int) -> None:
        self.step = step

    def reason_to_stop(self, record: Record) -> str | None:
        return "enough" if record.step >= self.step else None


def test_a_time_limit_counts_from_when_it_was_made() -> None:
    limit = TimeLimit(90.0, started=0.0)
    assert limit.reason_to_stop(Record(1)) == "the time of 1.5 min is over"
    assert TimeLimit(1000.0).reason_to_stop(Record(1)) is None
    assert 0 < TimeLimit(1000.0).seconds_left <= 1000


@pytest.mark.parametrize("step", [2, 4])
def test_a_stopped_run_is_finished_with_what_it_has(step: int, tmp_path: Path) -> None:
    settings = config("fixmatch", "training.steps=4", "training.log_every=1")
    run = begin(settings, tmp_path / "run")
    run.stopping_rules.append(AfterStep(step))
    result = finish(run).result
    assert result.steps == run.state.step == step
    assert run.folder.finished
    assert not has_work_left(run.folder)
    stopped = [note for note in result.notes if "enough" in note]
    assert stopped == (["stopped after 2 of 4 steps: enough"] if step < 4 else [])
