"""All that changes: the moving average, the totals, and a state that is saved and restored."""

import pytest
import torch

from fullmatch.algorithms import algorithm
from fullmatch.core import ratio
from fullmatch.errors import UserError
from fullmatch.training.state import Totals, TrainState
from tests.networks import TinyNetwork, tiny_task

CPU = torch.device("cpu")


def state(name: str = "doublematch") -> TrainState:
    """Of an algorithm with a head."""
    network = TinyNetwork(4)
    built = algorithm(name).build(tiny_task())
    return TrainState(network, built, weight_decay=0.0, momentum=0.9, nesterov=True, device=CPU)


def test_average_moves_and_statistics_are_copied() -> None:
    kept = state()
    with torch.no_grad():
        for parameter in kept.student.parameters():
            parameter += 1.0
        kept.student.norm.running_mean.fill_(5.0)
        kept.student.norm.num_batches_tracked.fill_(7)
    before = [p.clone() for p in kept.teacher.parameters()]
    kept.follow(0.9)
    for average, old in zip(kept.teacher.parameters(), before, strict=True):
        torch.testing.assert_close(average, old + 0.1)
    assert kept.teacher.norm.running_mean.eq(5.0).all()
    assert kept.teacher.norm.num_batches_tracked == 7
    assert not any(p.requires_grad for p in kept.teacher.parameters())


def test_heads_are_averaged_for_the_teacher() -> None:
    kept = state()
    assert kept.heads
    with torch.no_grad():
        for parameter in kept.algorithm.parameters():
            parameter += 1.0
    kept.follow(0.5)
    averaged = dict(kept.teacher_algorithm().named_parameters())
    for name, parameter in kept.algorithm.named_parameters():
        torch.testing.assert_close(averaged[name], parameter - 0.5)
    assert state("fixmatch").teacher_algorithm().state_dict() == {}


def test_there_and_back() -> None:
    used, fresh = state(), state()
    with torch.no_grad():
        for _, tensor in used.tensors():
            tensor.copy_(torch.rand(tensor.shape) * 10)
    used.totals.add({"loss": torch.tensor(2.0)})
    saved = used.state_dict()
    assert all(t.is_contiguous() for t in saved.values())
    fresh.load_state_dict(saved, step=3, metrics=used.totals.names)
    again = fresh.state_dict()
    assert again.keys() == saved.keys() and fresh.step == 3
    assert all(torch.equal(again[name], saved[name]) for name in saved)
    assert fresh.totals.read() == {"loss": 2.0}


def test_saved_tensors_are_copies() -> None:
    kept = state()
    saved = kept.state_dict()
    with torch.no_grad():
        kept.student.head.weight += 1
    assert not torch.equal(saved["student.head.weight"], kept.student.head.weight)


def test_state_of_another_model_is_refused() -> None:
    one, other = state("doublematch"), state("fixmatch")
    with pytest.raises(ValueError, match="another model"):
        other.load_state_dict(one.state_dict(), step=0, metrics=[])
    saved = other.state_dict()
    saved["student.head.bias"] = torch.zeros(9)
    with pytest.raises(ValueError, match=r"student.head.bias is \(9,\), expected \(4,\)"):
        other.load_state_dict(saved, step=0, metrics=[])


def test_totals_average_numbers_and_divide_sums() -> None:
    totals = Totals(CPU)
    assert totals.read() == {}
    for loss, hits, count in ((1.0, 1, 2), (3.0, 0, 6)):
        share = ratio(torch.tensor(hits), torch.tensor(count))
        nothing = ratio(torch.tensor(0), torch.tensor(0))
        totals.add({"loss": torch.tensor(loss), "share": share, "nothing": nothing})
    assert totals.read() == {"loss": 2.0, "share": 0.125}
    totals.add({"loss": torch.tensor(7.0), "share": share, "nothing": nothing})
    assert totals.read()["loss"] == 7.0


def test_totals_go_by_name_and_refuse_other_names() -> None:
    totals = Totals(CPU)
    one, two = torch.tensor(1.0), torch.tensor(2.0)
    totals.add({"x": one, "y": two})
    totals.add({"y": two, "x": one})
    for others in ({"x": one}, {"x": one, "z": two}, {"x": one, "y": two, "z": two}):
        with pytest.raises(UserError, match=r"the metric '[yz]' is there in some steps and not"):
            totals.add(others)
    assert totals.read() == {"x": 1.0, "y": 2.0}
