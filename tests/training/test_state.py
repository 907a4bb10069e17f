"""The training state: moving average, metric totals, saving and restoring."""

import pytest
import torch

from fullmatch.algorithms import algorithm
from fullmatch.config import OptimizerConfig
from fullmatch.core import ratio
from fullmatch.errors import UserError
from fullmatch.training.state import MetricTotals, TrainState
from tests.networks import TinyNetwork, tiny_task

CPU = torch.device("cpu")


def state(name: str = "doublematch") -> TrainState:
    """The state of an algorithm with a head."""
    network = TinyNetwork(4)
    built = algorithm(name).build(tiny_task())
    return TrainState(network, built, optimizer=OptimizerConfig(weight_decay=0.0), device=CPU)


def test_teacher_is_averaged_and_its_statistics_are_copied() -> None:
    one = state()
    with torch.no_grad():
        for parameter in one.student.parameters():
            parameter.add_(1.0)
        one.student.norm.running_mean.fill_(5.0)
        one.student.norm.num_batches_tracked.fill_(7)
    before = [p.clone() for p in one.teacher.parameters()]
    one.update_teacher(0.9)
    for average, old in zip(one.teacher.parameters(), before, strict=True):
        torch.testing.assert_close(average, old + 0.1)
    assert one.teacher.norm.running_mean.eq(5.0).all()
    assert one.teacher.norm.num_batches_tracked == 7
    assert not any(p.requires_grad for p in one.teacher.parameters())


def test_heads_are_averaged_for_the_teacher() -> None:
    one = state()
    assert one.heads
    with torch.no_grad():
        for parameter in one.algorithm.parameters():
            parameter.add_(1.0)
    one.update_teacher(0.5)
    averaged = dict(one.teacher_algorithm().named_parameters())
    for name, parameter in one.algorithm.named_parameters():
        torch.testing.assert_close(averaged[name], parameter - 0.5)
    assert state("fixmatch").teacher_algorithm().state_dict() == {}


def test_save_and_restore() -> None:
    used, fresh = state(), state()
    with torch.no_grad():
        for _, tensor in used.tensors():
            tensor.copy_(torch.rand(tensor.shape) * 10)
    used.totals.add({"loss": torch.tensor(2.0)})
    saved = used.state_dict()
    assert all(t.is_contiguous() for t in saved.values())
    fresh.load_state_dict(saved, step=3, metrics=used.totals.names)
    again = fresh.state_dict()
    assert again.keys() == saved.keys()
    assert fresh.step == 3
    assert all(torch.equal(again[name], saved[name]) for name in saved)
    assert fresh.totals.read() == {"loss": 2.0}


def test_saved_tensors_are_copies() -> None:
    one = state()
    saved = one.state_dict()
    with torch.no_grad():
        one.student.head.weight += 1
    assert not torch.equal(saved["student.head.weight"], one.student.head.weight)


def test_rejects_the_state_of_another_model() -> None:
    one, other = state("doublematch"), state("fixmatch")
    with pytest.raises(ValueError, match="another model"):
        other.load_state_dict(one.state_dict(), step=0, metrics=[])
    saved = other.state_dict()
    saved["student.head.bias"] = torch.zeros(9)
    with pytest.raises(
        ValueError, match=r"student.head.bias has the shape \(9,\), expected \(4,\)"
    ):
        other.load_state_dict(saved, step=0, metrics=[])


def test_totals_average_scalars_and_divide_sums_of_ratios() -> None:
    totals = MetricTotals(CPU)
    assert totals.read() == {}
    for loss, hits, count in ((1.0, 1, 2), (3.0, 0, 6)):
        share = ratio(torch.tensor(hits), torch.tensor(count))
        nothing = ratio(torch.tensor(0), torch.tensor(0))
        totals.add({"loss": torch.tensor(loss), "share": share, "nothing": nothing})
    assert totals.read() == {"loss": 2.0, "share": 0.125}
    totals.add({"loss": torch.tensor(7.0), "share": share, "nothing": nothing})
    assert totals.read()["loss"] == 7.0


def test_totals_require_the_same_names() -> None:
    totals = MetricTotals(CPU)
    one, two = torch.tensor(1.0), torch.tensor(2.0)
    totals.add({"x": one, "y": two})
    totals.add({"y": two, "x": one})
    for others in ({"x": one}, {"x": one, "z": two}, {"x": one, "y": two, "z": two}):
        with pytest.raises(UserError, match=r"the metric '[yz]' is missing in some steps"):
            totals.add(others)
    assert totals.read() == {"x": 1.0, "y": 2.0}


def test_totals_of_a_self_supervised_start_have_their_own_names() -> None:
    totals = MetricTotals(CPU)
    place = totals.sums.data_ptr()
    totals.add({"loss": torch.tensor(1.0), "found": torch.tensor(0.5)}, self_supervised=True)
    totals.add({"loss": torch.tensor(3.0), "selected": torch.tensor(0.25)})
    assert totals.read() == {"loss": 2.0, "found": 0.5, "selected": 0.25}
    totals.add({"loss": torch.tensor(4.0), "selected": torch.tensor(0.75)})
    assert totals.read() == {"loss": 4.0, "selected": 0.75}
    assert totals.sums.data_ptr() == place
    with pytest.raises(UserError, match="there are 65 metrics; report at most 64"):
        MetricTotals(CPU).add({str(number): torch.ones(()) for number in range(65)})
