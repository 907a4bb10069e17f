"""Alone, each of these is the identity; two processes agree."""

import multiprocessing
import os
from pathlib import Path

import torch
import torch.distributed as dist

from fullmatch import distributed


def test_alone() -> None:
    value = torch.tensor([1.0, 2.0], requires_grad=True)
    assert (distributed.world_size(), distributed.rank()) == (1, 0)
    for function in (distributed.maximum, distributed.mean, distributed.gather):
        assert function(value) is value


def two(rank: int, place: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{place}/meet", rank=rank, world_size=2)
    own = torch.tensor([float(rank), 10.0 - rank], requires_grad=True)
    assert (distributed.world_size(), distributed.rank()) == (2, rank)
    assert distributed.maximum(own.detach()).tolist() == [1.0, 10.0]
    assert distributed.mean(own).tolist() == [0.5, 9.5]
    assert distributed.gather(own).tolist() == [0.0, 10.0, 1.0, 9.0]
    assert not distributed.gather(own).requires_grad
    assert own.tolist() == [float(rank), 10.0 - rank]  # left as it was
    Path(place, f"done-{rank}").touch()
    dist.destroy_process_group()


def test_two_processes(tmp_path: Path) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=two, args=(rank, str(tmp_path))) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    assert sorted(path.name for path in tmp_path.glob("done-*")) == ["done-0", "done-1"]
