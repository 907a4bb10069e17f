"""Alone, each of these is the identity; two processes agree, while they do the same."""

from pathlib import Path

import torch
from torch import Tensor, nn

from fullmatch import distributed
from tests.two_processes import in_two_processes


def test_alone() -> None:
    value = torch.tensor([1.0, 2.0], requires_grad=True)
    assert (distributed.processes(), distributed.rank()) == (1, 0)
    with distributed.collective():
        assert distributed.world_size() == 1
        for function in (distributed.maximum, distributed.mean, distributed.gather):
            assert function(value) is value
        distributed.average_gradients([value])


def asked() -> int:
    rank = distributed.rank()
    own = torch.tensor([float(rank), 10.0 - rank], requires_grad=True)
    assert distributed.processes() == 2
    assert distributed.world_size() == 1 and distributed.gather(own) is own
    with distributed.collective():
        assert distributed.world_size() == 2
        assert distributed.maximum(own.detach()).tolist() == [1.0, 10.0]
        assert distributed.mean(own).tolist() == [0.5, 9.5]
        assert distributed.total(own).tolist() == [1.0, 19.0]
        assert distributed.gather(own).tolist() == [0.0, 10.0, 1.0, 9.0]
        assert not distributed.gather(own).requires_grad
    assert own.tolist() == [float(rank), 10.0 - rank]  # left as it was
    assert distributed.broadcast({"said": 7} if rank == 0 else None) == {"said": 7}
    return rank


def test_two_processes(tmp_path: Path) -> None:
    assert in_two_processes(asked, tmp_path) == [0, 1]


def averaged() -> list[Tensor | None]:
    layer, unused = nn.Linear(2, 1, bias=False), nn.Linear(1, 1)
    nn.init.zeros_(layer.weight)
    layer(torch.tensor([[1.0 + 2 * distributed.rank(), 4.0]])).sum().backward()
    with distributed.collective():
        distributed.average_gradients([*layer.parameters(), *unused.parameters()])
    return [layer.weight.grad, unused.weight.grad]


def test_gradients_become_their_mean(tmp_path: Path) -> None:
    for gradient, none in in_two_processes(averaged, tmp_path):
        assert gradient.tolist() == [[2.0, 4.0]]
        assert none is None
