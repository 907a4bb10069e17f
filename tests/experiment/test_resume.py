"""Exact resume: an interrupted run ends with the same bits as an uninterrupted one."""

from pathlib import Path

import pytest
import torch

from fullmatch.algorithms import names
from fullmatch.config import ExperimentConfig
from tests.small_runs import (
    STEPS,
    abandon_after,
    begin,
    config,
    finish,
    read_outputs,
    resume_run,
    stop_after,
    tensor_bytes,
    write_embeddings,
)


def config_of(name: str, folder: Path) -> ExperimentConfig:
    if name.endswith("semco"):
        return config(name, f"algorithm.embeddings={write_embeddings(folder)}")
    return config(name)


@pytest.mark.parametrize("name", names())
def test_every_algorithm_ends_the_same(name: str, tmp_path: Path) -> None:
    chosen = config_of(name, tmp_path)
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    whole = finish(begin(chosen, straight))
    stop_after(begin(chosen, broken), 2)
    abandon_after(resume_run(broken), 6)
    resumed = resume_run(broken)
    assert resumed.recovery == ["resumed at step 5"]
    finish(resumed)
    assert read_outputs(broken) == read_outputs(straight)
    assert tensor_bytes(resumed.state.state_dict()) == tensor_bytes(whole.state.state_dict())
    assert whole.state.step == resumed.state.step == STEPS


def test_long_tailed_run_ends_the_same(tmp_path: Path) -> None:
    chosen = config(
        "full-abc",
        "data.imbalance=4",
        "data.unlabeled_imbalance=-3",
        "data.unlabeled=40",
        labels=30,
    )
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    whole = finish(begin(chosen, straight))
    stop_after(begin(chosen, broken), 2)
    resumed = finish(resume_run(broken))
    assert resumed.split == whole.split
    assert resumed.dataset.unlabeled.equal(whole.dataset.unlabeled)
    assert read_outputs(broken) == read_outputs(straight)


def test_the_same_object_can_continue(tmp_path: Path) -> None:
    """A caller may leave the loop and come back to it."""
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    finish(begin(config(), straight))
    run = begin(config(), broken)
    abandon_after(run, 3)
    finish(run)
    assert read_outputs(broken)["state"] == read_outputs(straight)["state"]
    assert read_outputs(broken)["metrics"] == read_outputs(straight)["metrics"]


def test_finishing_can_be_repeated(tmp_path: Path) -> None:
    """Killed after the last step, before the result was written."""
    out = tmp_path / "run"
    finish(begin(config(), out))
    before = read_outputs(out)
    for written in ("result.json", "model.safetensors", "predictions.safetensors"):
        (out / written).unlink()
    finish(resume_run(out))
    assert read_outputs(out) == before


def test_stopped_before_anything_was_saved(tmp_path: Path) -> None:
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    finish(begin(config(), straight))
    begin(config(), broken)
    resumed = resume_run(broken)
    assert resumed.recovery == ["it was stopped before anything was saved: starting at step 0"]
    finish(resumed)
    assert read_outputs(broken) == read_outputs(straight)


def test_thread_count_is_restored(tmp_path: Path) -> None:
    torch.set_num_threads(2)
    stop_after(begin(config(), tmp_path / "run"), 2)
    torch.set_num_threads(1)
    resumed = resume_run(tmp_path / "run")
    assert torch.get_num_threads() == 2
    assert any("2 threads" in note for note in resumed.notes)


def test_the_averaged_model_is_restored(tmp_path: Path) -> None:
    """The teacher continues from its own weights, not from the student's."""
    run = begin(config(), tmp_path / "run")
    stop_after(run, 4)
    resumed = resume_run(tmp_path / "run")
    for own, kept in zip(
        resumed.state.teacher.parameters(), run.state.teacher.parameters(), strict=True
    ):
        assert torch.equal(own, kept)
    student = dict(resumed.state.student.named_parameters())
    teacher = dict(resumed.state.teacher.named_parameters())
    assert not torch.equal(student["head.weight"], teacher["head.weight"])


@pytest.mark.parametrize(
    "settings",
    [
        (
            *("optimizer.name=adamw", "optimizer.warmup=3", "optimizer.layer_decay=0.8"),
            *("training.accumulate=2", "optimizer.schedule=linear"),
        ),
        ("optimizer.name=torch.optim:RMSprop", "optimizer.options=alpha=0.9,centered=true"),
        ("training.ratio=0.5", "training.ema_schedule=warmup", "optimizer.schedule=one_cycle"),
    ],
)
def test_every_recipe_ends_the_same(settings: tuple[str, ...], tmp_path: Path) -> None:
    chosen = config("fullmatch", *settings)
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    whole = finish(begin(chosen, straight))
    stop_after(begin(chosen, broken), 2)
    abandon_after(resume_run(broken), 6)
    finish(resume_run(broken))
    assert read_outputs(broken) == read_outputs(straight)
    assert chosen.training.ratio != 0.5 or len(whole.trainer.feed.batch().unlabeled) == 3
