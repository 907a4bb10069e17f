"""Runs a function in two connected processes, as torchrun does."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist


def in_two_processes(work: Callable[..., object], folder: Path, *arguments: Any) -> list[Any]:
    """What each of the two returns, in order; `work` must be a module-level function."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_run, args=(rank, str(folder), work, arguments)) for rank in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
        process.kill()
    assert [process.exitcode for process in processes] == [0, 0]
    return [torch.load(folder / f"result-{rank}", weights_only=False) for rank in range(2)]


def _run(rank: int, folder: str, work: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2
    )
    torch.save(work(*arguments), f"{folder}/result-{rank}")
    dist.destroy_process_group()
