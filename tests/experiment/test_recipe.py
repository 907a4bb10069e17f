"""Settings that make a training faster: what they change, and that runs resume exactly."""

import copy
from pathlib import Path

import pytest
import torch

from fullmatch.algorithms import ALGORITHMS, SupportsFull
from fullmatch.algorithms.pseudo_labeling import PseudoLabeling
from fullmatch.core import Views
from fullmatch.errors import UserError
from fullmatch.experiment.recipe import apply_training_settings
from fullmatch.training.phases import MAIN, Phase
from tests.algorithms.agreement import confident_network
from tests.algorithms.toy import TASK, Toy, spec_of
from tests.small_runs import (
    begin,
    config,
    finish,
    read_outputs,
    resume_run,
    stop_after,
    tensor_bytes,
)

FAMILY = [name for name, spec in ALGORITHMS.items() if isinstance(spec(), SupportsFull)]
RECIPE = (
    "training.pseudo_labels=teacher",
    "training.labeled_view=both",
    "training.curriculum=0.5",
    "training.self_supervised=0.25",
)


def test_defaults_change_nothing() -> None:
    algorithm = spec_of("fullflex", Path()).build(TASK)
    apply_training_settings(algorithm, config().training)
    assert (algorithm.weak_gradient, algorithm.teacher_labels) == (True, False)
    assert algorithm.views == Views()


def test_teacher_labels_are_for_the_family() -> None:
    algorithm = spec_of("pi_model", Path()).build(TASK)
    with pytest.raises(UserError, match="is for methods of FixMatch's family"):
        apply_training_settings(algorithm, config("fullmatch", RECIPE[0]).training)


def test_labeled_views_are_for_methods_without_their_own() -> None:
    algorithm = spec_of("adamatch", Path()).build(TASK)
    with pytest.raises(UserError, match="this one has views of its own: set it to weak"):
        apply_training_settings(algorithm, config("fullmatch", RECIPE[1]).training)


@pytest.mark.parametrize("name", FAMILY)
def test_the_teacher_can_label_for_the_whole_family(name: str, tmp_path: Path) -> None:
    """The student sees no weak unlabeled view, and the labels are those of the teacher."""
    toy = Toy(spec_of(f"full-{name}", tmp_path))
    toy.algorithm.teacher_labels = True
    toy.teacher = confident_network(TASK.num_classes).eval().requires_grad_(False)
    batch = toy.batch(toy.algorithm.views)
    weak = batch.unlabeled[0].requires_grad_()
    toy.objective(batch, 0.5).loss.backward()
    assert weak.grad is None
    assert isinstance(toy.algorithm, PseudoLabeling)
    passes = toy.algorithm.passes(toy.student, batch, toy.teacher)
    assert torch.equal(passes.weak.features, toy.teacher(weak).features)


def test_a_step_with_teacher_labels_traces_as_one_graph(tmp_path: Path) -> None:
    torch._dynamo.reset()
    toy = Toy(spec_of("fullflex", tmp_path))
    toy.algorithm.teacher_labels = True
    toy.teacher.eval()
    batch = toy.batch(toy.algorithm.views)
    again = copy.deepcopy(toy)
    compiled = torch.compile(toy.algorithm.forward, fullgraph=True, backend="aot_eager")
    actual = compiled(toy.student, toy.teacher, batch, torch.tensor(0.5))
    torch.testing.assert_close(actual, again.objective(batch, 0.5))


@pytest.mark.parametrize("step", [1, 4])
def test_a_run_with_all_of_them_resumes_exactly(step: int, tmp_path: Path) -> None:
    """Stopped in the self-supervised start, and after it."""
    chosen = config("fullflex", *RECIPE)
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    whole = finish(begin(chosen, straight))
    stop_after(begin(chosen, broken), step)
    resumed = finish(resume_run(broken))
    assert read_outputs(broken) == read_outputs(straight)
    assert tensor_bytes(resumed.state.state_dict()) == tensor_bytes(whole.state.state_dict())
    first, *_, last = whole.folder.read_records()
    assert {"view_found", "selected"} <= first.metrics.keys()  # the log covers both phases
    assert "view_found" not in last.metrics


def test_a_run_reads_the_batches_of_its_phases(tmp_path: Path) -> None:
    run = begin(config("fullmatch", *RECIPE), tmp_path / "run")
    assert list(run.steps) == [Phase(self_supervised=True), Phase(0.25), Phase(0.5), MAIN]
    run.state.train()
    assert not run.state.teacher.training
    run.trainer.feed.seek(0)
    batch = run.augmentation(run.trainer.feed.batch())
    assert [len(view) for view in batch.labeled] == [12]
    assert batch.labels.tolist() == batch.labels[:6].tolist() * 2


def test_the_first_labels_use_measured_statistics(tmp_path: Path) -> None:
    run = begin(config("fullmatch", RECIPE[0]), tmp_path / "run")
    for network in (run.state.student, run.state.teacher):
        assert all(b.any() for name, b in network.named_buffers() if "running_mean" in name)
