"""Collectives are the identity in one process, and agree between two."""

from pathlib import Path

import torch
from torch import Tensor

from fullmatch import distributed
from tests.two_processes import in_two_processes


def test_one_process() -> None:
    value = torch.tensor([1.0, 2.0], requires_grad=True)
    assert (distributed.world_size(), distributed.rank()) == (1, 0)
    functions = (
        distributed.maximum,
        distributed.mean,
        distributed.total,
        distributed.gather,
        distributed.own_rows,
    )
    for function in functions:
        assert function(value) is value


def run_collectives() -> list[Tensor | None]:
    rank = distributed.rank()
    own = torch.tensor([float(rank), 10.0 - rank], requires_grad=True)
    assert distributed.world_size() == 2
    assert distributed.maximum(own).tolist() == [1.0, 10.0]
    assert distributed.mean(own).tolist() == [0.5, 9.5]
    assert distributed.total(own).tolist() == [1.0, 19.0]
    assert distributed.gather(own).tolist() == [0.0, 1.0, 10.0, 9.0]  # as in the whole batch
    assert distributed.own_rows(torch.arange(4)).tolist() == [rank, rank + 2]
    views = distributed.own_rows(torch.arange(8), groups=2).tolist()
    assert views == [rank, rank + 2, rank + 4, rank + 6]
    with distributed.alone():
        assert distributed.gather(own) is own
    assert own.tolist() == [float(rank), 10.0 - rank]  # unchanged
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0]) * (1 + rank)
    (distributed.gather(own) * weights).sum().backward()  # each process has a loss of its own
    gathered, own.grad = own.grad, None
    (distributed.mean(own) * (1 + rank)).sum().backward()
    return [gathered, own.grad]


def test_two_processes(tmp_path: Path) -> None:
    first, second = in_two_processes(run_collectives, tmp_path)
    assert [gradient.tolist() for gradient in first] == [[3.0, 9.0], [1.5, 1.5]]
    assert [gradient.tolist() for gradient in second] == [[6.0, 12.0], [1.5, 1.5]]
