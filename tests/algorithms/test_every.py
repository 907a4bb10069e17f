"""Requirements for every algorithm and every full- form; new ones are tested automatically."""

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fullmatch.algorithms import ALGORITHMS, SupportsFull, algorithm, full, names
from fullmatch.core import Spec, Views
from fullmatch.errors import UserError
from tests.algorithms.agreement import confident_network
from tests.algorithms.toy import TASK, Toy, spec_of

every = pytest.mark.parametrize("name", names())
FAMILY = [name for name, spec in ALGORITHMS.items() if isinstance(spec(), SupportsFull)]
# Its equivariance loss has gradient through the weak view as well, by design.
LEARNS_FROM_WEAK = {"crmatch"}
DRAWING = {"abc", "adamatch", "mixmatch", "remixmatch", "npmatch", "ups", "ups_offline", "vat"}


@every
def test_traces_as_one_graph(name: str, tmp_path: Path) -> None:
    """Reading a value on the host, or branching on one, would break the graph."""
    torch._dynamo.reset()
    eager = Toy(spec_of(name, tmp_path))
    traced = copy.deepcopy(eager)
    compiled = torch.compile(traced.algorithm.forward, fullgraph=True, backend="aot_eager")
    for step in range(2):
        batch = eager.batch(eager.algorithm.views)
        progress = torch.tensor(0.3 + 0.1 * step)
        torch.manual_seed(step)
        expected = eager.algorithm(eager.student, eager.teacher, batch, progress)
        torch.manual_seed(step)
        actual = compiled(traced.student, traced.teacher, batch, progress)
        expected.loss.backward()
        actual.loss.backward()
        close: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5}
        torch.testing.assert_close(actual.loss, expected.loss, **close)
        torch.testing.assert_close(actual.metrics, expected.metrics, **close, equal_nan=True)
        for one, other in zip(eager.parameters(), traced.parameters(), strict=True):
            torch.testing.assert_close(other.grad, one.grad, **close)
        memory = eager.algorithm.state_dict() | eager.student.state_dict()
        again = traced.algorithm.state_dict() | traced.student.state_dict()
        torch.testing.assert_close(again, memory, **close)


class DrawCounter(TorchDispatchMode):
    """Counts calls that draw random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.calls.append(str(func))
        return func(*args, **(kwargs or {}))


@every
def test_draws_random_numbers_in_one_call(name: str, tmp_path: Path) -> None:
    """A compiler may reorder several calls, and the steps would differ from eager code."""
    toy = Toy(spec_of(name, tmp_path))
    batch = toy.batch(toy.algorithm.views)
    with DrawCounter() as draws:
        toy.algorithm(toy.student, toy.teacher, batch, torch.tensor(0.5))
    assert len(draws.calls) <= 1, draws.calls
    assert draws.calls or name.removeprefix("full-") not in DRAWING


@every
def test_learns_a_toy_problem(name: str, tmp_path: Path) -> None:
    toy = Toy(spec_of(name, tmp_path))
    losses = toy.train(100)
    assert all(torch.tensor(losses).isfinite())
    assert toy.error() < 0.2  # 0.75 by chance


@every
def test_memory_is_written_in_place(name: str, tmp_path: Path) -> None:
    toy = Toy(spec_of(name, tmp_path))
    places = {key: value.data_ptr() for key, value in toy.algorithm.state_dict().items()}
    toy.train(3)
    assert {key: value.data_ptr() for key, value in toy.algorithm.state_dict().items()} == places


@every
def test_state_is_complete(name: str, tmp_path: Path) -> None:
    """New objects with a loaded state continue like the old ones."""
    spec = spec_of(name, tmp_path)
    used, fresh = Toy(spec), Toy(spec, seed=1)
    used.train(3)
    fresh.student.load_state_dict(used.student.state_dict())
    fresh.teacher.load_state_dict(used.teacher.state_dict())
    fresh.algorithm.load_state_dict(used.algorithm.state_dict())
    fresh.labeled, fresh.unlabeled = used.labeled, used.unlabeled
    torch.manual_seed(2)
    expected = used.train(3)
    torch.manual_seed(2)
    assert fresh.train(3) == expected


@every
def test_same_seed_same_steps(name: str, tmp_path: Path) -> None:
    spec = spec_of(name, tmp_path)
    assert Toy(spec).train(2) == Toy(spec).train(2)


@pytest.mark.parametrize("name", [name for name in FAMILY if name not in LEARNS_FROM_WEAK])
def test_weak_view_teaches_but_does_not_learn(name: str, tmp_path: Path) -> None:
    """With fixed batch statistics, which otherwise connect the views, it gets no gradient."""
    toy = Toy(spec_of(name, tmp_path))
    toy.student = confident_network(TASK.num_classes).eval()  # confident enough to select something
    batch = toy.batch(toy.algorithm.views)
    weak = batch.unlabeled[0].requires_grad_()
    toy.objective(batch, 0.5).loss.backward()
    assert weak.grad is None or not weak.grad.any()


@pytest.mark.parametrize("name", [*FAMILY, *(f"full-{name}" for name in FAMILY)])
def test_weak_view_can_be_left_out_of_the_backward_pass(name: str, tmp_path: Path) -> None:
    toy = Toy(spec_of(name, tmp_path))
    toy.algorithm.weak_gradient = False
    toy.train(60)
    assert toy.error() < 0.5
    batch = toy.batch(toy.algorithm.views)
    weak = batch.unlabeled[0].requires_grad_()
    toy.objective(batch, 0.5).loss.backward()
    assert weak.grad is None


@every
def test_spec_has_what_a_listing_needs(name: str) -> None:
    spec = algorithm(name)
    assert isinstance(spec, Spec)
    assert spec.ratio >= 1
    assert spec.about is not None
    assert 2 <= len(spec.about.idea.split()) <= 8
    with pytest.raises(TypeError):
        type(spec)(no_such_field=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in FAMILY])
def test_full_needs_pseudo_labels(name: str) -> None:
    with pytest.raises(UserError):
        full(algorithm(name))


@pytest.mark.parametrize("name", FAMILY)
def test_full_with_zero_weights_equals_the_host(name: str, tmp_path: Path) -> None:
    spec = spec_of(name, tmp_path)
    assert Toy(full(spec, alpha=0.0, beta=0.0)).train(2) == Toy(spec).train(2)


def test_views_of_spec_and_module_agree(tmp_path: Path) -> None:
    for name in names():
        spec = spec_of(name, tmp_path)
        assert spec.build(TASK).views == spec.views


@every
def test_views_of_a_subclass_reach_its_module(name: str, tmp_path: Path) -> None:
    spec = spec_of(name, tmp_path)
    others = Views(labeled=("plain",), unlabeled=("strong", "plain", "weak"))
    own = type("Own", (type(spec),), {"views": others})
    fields = {field.name: getattr(spec, field.name) for field in dataclasses.fields(spec)}
    assert own(**fields).build(TASK).views == others
