"""A pool of processes that decode pictures, because threads compete for Python's lock."""

import gc
import mmap
import os
import signal
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import prod
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fullmatch.data.stores import pictures
from fullmatch.errors import UserError

SLOT_SIZE = 8  # pictures in a slot
SLOTS = 2  # per process: it fills one while the other is emptied
POLL_SECONDS = 1.0  # how often each side checks that the other is still alive

Decode = Callable[[Any, NDArray[np.uint8]], bool]  # an item into pixels; whether it was readable


class DecoderPool:
    """Forked processes that decode pictures into memory shared with this process.

    What they are sent are items that `decode` understands: paths, or positions in what the fork
    has inherited, such as a memory-mapped table.

    A fork imports nothing again, so scripts need no `if __name__ == "__main__"` guard. The shared
    memory is anonymous, because /dev/shm is small in containers. The processes end when the pool
    is closed or garbage collected. Only one thread may use the pool at a time.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        processes: int,
        poll_seconds: float = POLL_SECONDS,
        *,
        decode: Decode = pictures.decode_into,
    ) -> None:
        Image.preinit()
        Image.init()  # loads every format now, so that the processes import nothing
        size = (processes, SLOTS, SLOT_SIZE, *shape)
        slots = np.frombuffer(mmap.mmap(-1, prod(size)), np.uint8).reshape(size)
        self.poll_seconds = poll_seconds
        self.slots: dict[Connection, NDArray[np.uint8]] = {}
        self.pids: list[int] = []
        self.close = weakref.finalize(self, _shut_down, self.pids, self.slots, os.getpid())
        with self._close_on_error():
            for worker_slots in slots:
                ours, theirs = Pipe()
                self.slots[ours] = worker_slots
                self.pids.append(_start_worker(theirs, worker_slots, decode, poll_seconds))
                theirs.close()  # now only the worker holds it, so we notice when it dies
            for pipe in self.slots:
                pipe.recv()  # the worker has closed our files, including any lock file

    def decode(self, items: Sequence[Any], out: NDArray[np.uint8] | None) -> list[bool]:
        """Decode items into `out`, in order, and return which ones could be read."""
        readable = [False] * len(items)
        missing = len(items)
        # More chunks than slots, so that fast workers get more of them.
        size = max(1, min(SLOT_SIZE, missing // (2 * SLOTS * len(self.slots))))
        starts = iter(range(0, missing, size))

        def send_next_chunk(pipe: Connection, slot: int) -> None:
            start = next(starts, None)
            if start is not None:
                pipe.send((slot, start, items[start : start + size]))

        with self._close_on_error():
            for slot in range(SLOTS):
                for pipe in self.slots:
                    send_next_chunk(pipe, slot)
            while missing:
                ready: list[Any] = wait(self.slots, self.poll_seconds)
                if not ready and any(map(_has_exited, self.pids)):
                    raise EOFError
                for pipe in ready:
                    slot, start, decoded = pipe.recv()
                    end = start + len(decoded)
                    if out is not None:
                        out[start:end] = self.slots[pipe][slot, : len(decoded)]
                    readable[start:end] = decoded
                    missing -= len(decoded)
                    send_next_chunk(pipe, slot)
        return readable

    @contextmanager
    def _close_on_error(self) -> Iterator[None]:
        """Close the pool on any error, so that a late answer is not mistaken for the next one."""
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, EOFError | OSError):
                raise UserError(
                    "a process that decodes pictures died or could not start, perhaps because "
                    "memory ran out; free some memory, then train again or resume the run"
                ) from None
            raise


def _start_worker(
    pipe: Connection, slots: NDArray[np.uint8], decode: Decode, poll_seconds: float
) -> int:
    parent = os.getpid()
    with warnings.catch_warnings():
        # Python warns that a fork can inherit a locked lock; the worker takes none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            _run_worker(pipe, slots, decode, parent, poll_seconds)
        finally:
            os._exit(0)  # never return into the caller's program
    return pid


def _run_worker(
    pipe: Connection, slots: NDArray[np.uint8], decode: Decode, parent: int, poll_seconds: float
) -> None:
    """Decode the items sent through the pipe until it is closed or the parent is gone."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent may still need a last batch
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()  # never free inherited objects here, such as tensors on a GPU
    warnings.simplefilter("ignore")  # otherwise each process would repeat them
    for file in map(int, os.listdir("/proc/self/fd")):
        if file > 2 and file != pipe.fileno():  # the parent's lock files and GPU handles
            with suppress(OSError):
                os.close(file)
    with suppress(EOFError, OSError):
        pipe.send("ready")
        while os.getppid() == parent:
            if pipe.poll(poll_seconds):
                slot, start, items = pipe.recv()
                decoded = [decode(item, slots[slot, row]) for row, item in enumerate(items)]
                pipe.send((slot, start, decoded))


def _has_exited(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _shut_down(pids: list[int], slots: dict[Connection, Any], parent: int) -> None:
    if os.getpid() != parent:  # in another fork, which does not own the workers
        return
    for pipe in slots:
        pipe.close()
    for pid in pids:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)  # a worker has nothing to clean up
            os.waitpid(pid, 0)
