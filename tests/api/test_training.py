"""Training from Python: in one call, or record by record."""

import signal
from pathlib import Path

import pytest

import fullmatch
from fullmatch.api.starting import to_assignments
from fullmatch.cli import main
from fullmatch.errors import UserError
from fullmatch.storage.checkpoints import newest_checkpoint
from tests.small_runs import read_outputs

TINY = {
    "training.batch": 4,
    "training.ratio": 2,
    "training.log_every": 3,
    "model.name": "wrn-10-1",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def begin(out: str, steps: int = 9, *, progress: bool = False) -> fullmatch.Training:
    return fullmatch.start(
        "digits", labels=20, steps=steps, settings=TINY, out=out, progress=progress
    )


def test_the_same_as_the_command(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = fullmatch.train("digits", labels=20, steps=6, settings=TINY, out="api", progress=False)
    assert capsys.readouterr().out == ""
    flags = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
    main(["train", "digits", "--labels", "20", "--steps", "6", *flags, "--out", "command"])
    assert read_outputs(here / "api") == read_outputs(here / "command")
    assert run.folder == Path("api")
    assert run.result.teacher is not None
    assert run.accuracy == run.result.teacher.top1


def test_progress_is_shown_unless_it_is_turned_off(capsys: pytest.CaptureFixture[str]) -> None:
    begin("run", 3, progress=True).finish()
    assert "fullmatch 3/3" in capsys.readouterr().out


def test_records_can_be_watched() -> None:
    training = begin("run")
    assert next(training).step == 3
    steps = [record.step for record in training]
    assert steps == [6, 9]
    run = training.finish()
    assert [record.step for record in run.records] == [3, 6, 9]


def test_leaving_the_loop_loses_nothing(here: Path) -> None:
    training = begin("left")
    for _ in training:
        break
    training.finish()
    begin("straight").finish()
    left, straight = read_outputs(here / "left"), read_outputs(here / "straight")
    assert left == straight


def test_leaving_the_loop_keeps_what_was_trained(here: Path) -> None:
    training = begin("left")
    for record in training:
        if record.step == 6:
            break
    assert newest_step("left") == 6  # though a checkpoint is due much later
    del training  # a run has one owner at a time
    run = fullmatch.resume("left", progress=False)
    begin("straight").finish()
    assert read_outputs(run.folder) == read_outputs(here / "straight")


def test_an_interrupt_in_the_loop_saves(here: Path) -> None:
    training = begin("stopped")
    advance = training.run.trainer.advance

    def interrupted() -> None:
        if training.run.state.step == 4:
            signal.raise_signal(signal.SIGINT)
        advance()

    training.run.trainer.advance = interrupted
    with pytest.raises(KeyboardInterrupt):
        list(training)
    with pytest.raises(UserError, match=r"fullmatch\.resume\('stopped'\)"):
        training.finish()
    assert newest_step("stopped") == 5
    run = fullmatch.resume("stopped", progress=False)
    begin("straight").finish()
    assert read_outputs(run.folder) == read_outputs(here / "straight")


def newest_step(run: str) -> int | None:
    saved, _ = newest_checkpoint(Path(run) / "checkpoints")
    return saved and saved.facts.step


def test_stop_keeps_the_model_of_that_step() -> None:
    training = begin("run", 100)
    for record in training:
        if record.step == 6:
            training.stop("it is good enough")
    run = training.finish()
    assert run.result.steps == 9
    assert "stopped after 9 of 100 steps: it is good enough" in run.result.notes
    assert (run.folder / "model.safetensors").exists()


def test_a_paused_run_is_resumed(here: Path) -> None:
    training = begin("paused")
    for record in training:
        if record.step == 3:
            training.pause()
    with pytest.raises(UserError, match=r"stopped .*: fullmatch\.resume\('paused'\)"):
        training.finish()
    run = fullmatch.resume("paused", progress=False)
    begin("straight").finish()
    assert read_outputs(run.folder) == read_outputs(here / "straight")


def test_a_paused_run_is_finished_with_what_it_has() -> None:
    training = begin("paused", 100)
    for record in training:
        if record.step == 3:
            training.pause()
    del training
    main(["resume", "paused", "--finish"])
    run = fullmatch.FinishedRun("paused")
    assert run.result.steps == 3
    assert "stopped after 3 of 100 steps: finished on request" in run.result.notes
    assert run.accuracy is not None
    assert (run.folder / "model.safetensors").exists()


def test_a_run_without_a_step_cannot_be_finished() -> None:
    training = begin("new")
    training.pause()
    assert next(training).paused
    del training
    with pytest.raises(UserError, match=r"not trained yet.* fullmatch resume new$"):
        fullmatch.resume("new", finish=True, progress=False)


def test_finishing_a_complete_training_is_no_early_stop(here: Path) -> None:
    training = begin("complete")
    while next(training).step < 9:
        pass
    del training
    run = fullmatch.resume("complete", finish=True, progress=False)
    begin("straight").finish()
    assert read_outputs(run.folder) == read_outputs(here / "straight")


def test_settings_as_a_mapping_or_as_in_the_command() -> None:
    settings = {
        "data.flip": True,
        "model.sizes": (32, 64),
        "model.start": None,
        "a.b": "x",
        "c": ["y", "z, w"],
    }
    assert to_assignments(settings) == [
        "data.flip=true",
        "model.sizes=[32, 64]",
        "model.start=none",
        "a.b=x",
        "c=[y, 'z, w']",
    ]
    assert to_assignments(["a=1", "b=2"]) == ["a=1", "b=2"]
    assert to_assignments("a=1") == ["a=1"]


def test_a_wrong_name_gets_a_hint() -> None:
    with pytest.raises(fullmatch.UserError, match=r"'training\.step'; did you mean"):
        fullmatch.train("digits", settings={"training.step": 3}, progress=False)
