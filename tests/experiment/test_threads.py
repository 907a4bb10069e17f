"""One thread is chosen only where it is clearly faster, and only where nobody has chosen."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from fullmatch.experiment.inputs import load_inputs
from fullmatch.experiment.threads import (
    VARIABLES,
    PassTime,
    ThreadChooser,
    images_of_step,
    one_thread_gain,
    time_passes,
)
from fullmatch.storage.checkpoints import newest_checkpoint
from tests.small_runs import begin, config, digits, resume_run

TWO = 2


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(TWO)
    yield
    torch.set_num_threads(before)


def busy(threads: int, images: int) -> PassTime:
    """Seconds instead of microseconds on the clock, of which the process computes few."""
    return PassTime(images * (4.0 if threads > 1 else 1.0), 1e-6 * images)


def idle(threads: int, images: int) -> PassTime:
    return PassTime(1e-6 * images / threads, 1e-6 * images)


def settle(measure: object, *settings: str) -> tuple[str | None, int]:
    settled = config("fixmatch", *settings)
    _, inputs = load_inputs(settled, digits())
    note = ThreadChooser().settle(settled, inputs.dataset, measure)  # type: ignore[arg-type]
    return note, torch.get_num_threads()


def test_idle_machine_keeps_the_usual_number() -> None:
    assert settle(idle) == (None, TWO)


def test_busy_machine_trains_with_one_thread_and_says_so() -> None:
    note, threads = settle(busy)
    assert threads == 1
    assert note is not None
    assert "1 thread, which is 4.0 times as fast here as 2" in note
    assert "--set training.threads=2" in note


def fail(threads: int, images: int) -> PassTime:
    raise AssertionError("nothing should be measured")


def test_what_a_user_has_chosen_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settle(fail, "training.threads=2") == (None, TWO)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert settle(fail) == (None, TWO)


def test_next_run_of_the_process_starts_from_the_usual_number() -> None:
    settled = config("fixmatch")
    _, inputs = load_inputs(settled, digits())
    chooser = ThreadChooser()
    assert chooser.settle(settled, inputs.dataset, busy)
    assert chooser.settle(settled, inputs.dataset, idle) is None
    assert torch.get_num_threads() == TWO
    torch.set_num_threads(1)  # by the user
    assert chooser.settle(settled, inputs.dataset, fail) is None
    assert torch.get_num_threads() == 1


def test_large_networks_use_every_core() -> None:
    measured: list[int] = []

    def slow(threads: int, images: int) -> PassTime:
        measured.append(images)
        return PassTime(0.1 * images, 0.1 * images)

    assert one_thread_gain(slow, TWO, 100) == 0.0
    assert max(measured) == 8


def test_passes_are_of_the_networks_size_and_leave_the_random_state() -> None:
    settled = config("fixmatch")
    _, inputs = load_inputs(settled, digits())
    assert images_of_step(settled) == 6 + 2 * 12
    measure = time_passes(settled, inputs.dataset)
    assert min(measure(1, 4)) > 0
    state = torch.random.get_rng_state()
    ThreadChooser().settle(settled, inputs.dataset)
    assert torch.equal(state, torch.random.get_rng_state())


def test_checkpoints_keep_the_number(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    run = begin(config("fixmatch"), tmp_path / "run")
    next(run.records())
    checkpoint, _ = newest_checkpoint(run.folder.checkpoints)
    assert checkpoint is not None
    assert checkpoint.facts.threads == 1
    torch.set_num_threads(TWO)
    resume_run(tmp_path / "run")
    assert torch.get_num_threads() == 1
