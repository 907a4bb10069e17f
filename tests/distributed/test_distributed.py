"""Collectives are the identity in one process, and agree between two."""

from pathlib import Path

import torch
from torch import Tensor, nn

from fullmatch import distributed
from tests.two_processes import in_two_processes


def test_one_process() -> None:
    value = torch.tensor([1.0, 2.0], requires_grad=True)
    assert (distributed.processes(), distributed.rank()) == (1, 0)
    with distributed.collective():
        assert distributed.world_size() == 1
        for function in (distributed.maximum, distributed.mean, distributed.gather):
            assert function(value) is value
        distributed.average_gradients([value])


def run_collectives() -> int:
    rank = distributed.rank()
    own = torch.tensor([float(rank), 10.0 - rank], requires_grad=True)
    assert distributed.processes() == 2
    assert distributed.world_size() == 1
    assert distributed.gather(own) is own
    with distributed.collective():
        assert distributed.world_size() == 2
        assert distributed.maximum(own.detach()).tolist() == [1.0, 10.0]
        assert distributed.mean(own).tolist() == [0.5, 9.5]
        assert distributed.total(own).tolist() == [1.0, 19.0]
        assert distributed.gather(own).tolist() == [0.0, 10.0, 1.0, 9.0]
        assert not distributed.gather(own).requires_grad
    assert own.tolist() == [float(rank), 10.0 - rank]  # unchanged
    assert distributed.broadcast({"step": 7} if rank == 0 else None) == {"step": 7}
    return rank


def test_two_processes(tmp_path: Path) -> None:
    assert in_two_processes(run_collectives, tmp_path) == [0, 1]


def average_gradients() -> list[Tensor | None]:
    layer, unused = nn.Linear(2, 1, bias=False), nn.Linear(1, 1)
    nn.init.zeros_(layer.weight)
    layer(torch.tensor([[1.0 + 2 * distributed.rank(), 4.0]])).sum().backward()
    with distributed.collective():
        distributed.average_gradients([*layer.parameters(), *unused.parameters()])
    return [layer.weight.grad, unused.weight.grad]


def test_gradients_become_their_mean(tmp_path: Path) -> None:
    for gradient, none in in_two_processes(average_gradients, tmp_path):
        assert gradient.tolist() == [[2.0, 4.0]]
        assert none is None
