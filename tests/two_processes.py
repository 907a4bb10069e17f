"""Runs a function in connected processes, as torchrun does."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist


def in_processes(
    count: int, work: Callable[..., object], folder: Path, *arguments: Any
) -> list[Any]:
    """What each process returns, in order; `work` must be a module-level function."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_run, args=(rank, count, str(folder), work, arguments))
        for rank in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(600)
        process.kill()
    assert [process.exitcode for process in processes] == [0] * count
    return [torch.load(folder / f"result-{rank}", weights_only=False) for rank in range(count)]


def in_two_processes(work: Callable[..., object], folder: Path, *arguments: Any) -> list[Any]:
    return in_processes(2, work, folder, *arguments)


def _run(
    rank: int, count: int, folder: str, work: Callable[..., object], arguments: tuple[Any, ...]
) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=count
    )
    torch.save(work(*arguments), f"{folder}/result-{rank}")
    dist.destroy_process_group()
