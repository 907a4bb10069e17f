"""How processes find each other, agree, and let the first of them do what is done once."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import torch
import torch.distributed as dist

from fullmatch.distributed.collectives import alone, rank, total, world_size
from fullmatch.errors import UserError

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

T = TypeVar("T")
CONNECT_SECONDS = 60.0


def is_first() -> bool:
    """Whether this process writes and prints."""
    return rank() == 0


def restarted() -> bool:
    """Whether torchrun has started these processes again after one was lost."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT") or 0) > 0


def attempt() -> str:
    """What tells this start from earlier ones: torchrun keeps its store, with their addresses.

    On several machines each counts its own failures only: there torchrun must be told to make a
    new store, by TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1.
    """
    one_machine = os.environ.get("GROUP_WORLD_SIZE", "1") == "1"
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if one_machine else ""


def may_restart() -> bool:
    """Whether torchrun would start these processes again."""
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS") or 0) > 0


def timeout() -> timedelta:
    """How long a process waits for one that lives but does not answer; torch's default."""
    seconds = os.environ.get("FULLMATCH_TIMEOUT") or "600"
    if not seconds.isdecimal() or int(seconds) == 0:
        raise UserError(f"FULLMATCH_TIMEOUT is {seconds!r}, expected a number of seconds above 0")
    return timedelta(seconds=int(seconds))


@contextmanager
def process_group() -> Iterator["Store"]:
    """Connect to the other processes, with one GPU per process if there are GPUs."""
    from torch._C._distributed_c10d import PrefixStore  # not in every build of torch
    from torch.distributed.rendezvous import rendezvous

    limit = timeout()
    check_launch()
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    try:
        store, number, size = next(rendezvous("env://", timeout=timedelta(seconds=CONNECT_SECONDS)))
        store = PrefixStore(attempt(), store)
        store.set_timeout(limit)
        # Objects and flags are sent from CPU memory, so gloo is always needed.
        backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"
        dist.init_process_group(backend, store=store, rank=number, world_size=size, timeout=limit)
    except (RuntimeError, ValueError) as error:  # torch's network and store errors are the former
        place = f"{os.environ['MASTER_ADDR']}:{os.environ.get('MASTER_PORT', '')}"
        reason = str(error).strip().partition("\n")[0][:200]
        raise UserError(
            f"the processes cannot connect at {place} ({reason}); start all of them at about the "
            "same time with torchrun, with an address that every machine can reach"
        ) from None
    try:
        yield store
    finally:
        dist.destroy_process_group()


def check_launch() -> None:
    """`UserError` where processes were started in a way that cannot work."""
    if "MASTER_ADDR" not in os.environ or "LOCAL_RANK" not in os.environ:
        raise UserError(
            "WORLD_SIZE asks for several processes, but their addresses are missing; start them "
            "with torchrun, or unset WORLD_SIZE"
        )
    here, gpus = int(os.environ.get("LOCAL_WORLD_SIZE", "1")), torch.cuda.device_count()
    if 0 < gpus < here:
        raise UserError(
            f"{here} processes were started on a machine with {gpus} GPU: use torchrun "
            f"--nproc-per-node {gpus}, or no torchrun for a single one"
        )


def on_first(work: Callable[[], T]) -> T:
    """What the first process gets from `work`; the others wait for it, and end if it fails.

    Inside `work` it is on its own: nothing there waits for the others.
    """
    if world_size() == 1:
        return work()
    outcome: list[tuple[bool, T | None]] = [(False, None)]
    try:
        if is_first():
            with alone():
                outcome = [(True, work())]
    finally:  # an error too is sent, so that nobody waits for a result
        dist.broadcast_object_list(outcome, device=torch.device("cpu"))
    done, result = outcome[0]
    if not done:
        raise SystemExit(1)  # the first process says why
    return result  # type: ignore[return-value]


def first_then_others(work: Callable[[], T]) -> T:
    """What each process gets from `work`; the others begin when the first is done."""
    results: list[T] = []
    on_first(lambda: results.append(work()))
    return results[0] if results else work()


def require_same(facts: dict[str, str]) -> None:
    """`UserError` that names the first process with another value than process 0."""
    if world_size() == 1:
        return
    expected = on_first(lambda: facts)
    names = list(facts)
    differing = [place for place, name in enumerate(names, 1) if facts[name] != expected[name]]
    places = torch.zeros(world_size(), dtype=torch.int64)  # of each process's first difference
    places[rank()] = differing[0] if differing else 0
    for number, place in enumerate(total(places).tolist()):
        if place:
            raise UserError(
                f"process {number} has {names[place - 1]} other than those of process 0; start all "
                "with the same command, data and versions"
            )
