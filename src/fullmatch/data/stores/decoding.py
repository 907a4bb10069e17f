"""Picture files decoded by several processes, since threads wait for each other in Python."""

import gc
import mmap
import os
import signal
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from math import prod
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fullmatch.data.stores import pictures
from fullmatch.errors import UserError

ROOM = 8  # pictures in a slot
SLOTS = 2  # of a process: it fills one while the other is emptied
LOOK = 1.0  # seconds after which either side looks whether the other is still there


class Decoders:
    """Processes, forked when this is made, that decode files into memory they share with us.

    A fork imports nothing anew, so scripts need no guard around their main part. What the
    processes share is no file, since the memory for those is small in containers. They end when
    this is closed or dropped. One thread at a time may ask them.
    """

    def __init__(self, shape: tuple[int, int, int], processes: int) -> None:
        Image.preinit()
        Image.init()  # every format is known now, so that the processes import nothing
        room = (processes, SLOTS, ROOM, *shape)
        slots = np.frombuffer(mmap.mmap(-1, prod(room)), np.uint8).reshape(room)
        self.slots: dict[Connection, NDArray[np.uint8]] = {}
        self.pids: list[int] = []
        self.close = weakref.finalize(self, _end, self.pids, self.slots, os.getpid())
        with self._whole():
            for own in slots:
                ours, theirs = Pipe()
                self.slots[ours] = own
                self.pids.append(_fork(theirs, own))
                theirs.close()  # only the process holds it now, and so its death is seen here
            for pipe in self.slots:
                pipe.recv()  # it has let go of our files, a lock among them

    def decode(self, paths: Sequence[str], into: NDArray[np.uint8] | None) -> list[bool]:
        """Which files could be read; their pixels come to lie in `into`, in order."""
        readable = [False] * len(paths)
        missing = len(paths)
        # Some chunks more than slots: whoever was quick takes another.
        size = max(1, min(ROOM, missing // (2 * SLOTS * len(self.slots))))
        starts = iter(range(0, missing, size))

        def give(pipe: Connection, slot: int) -> None:
            start = next(starts, None)
            if start is not None:
                pipe.send((slot, start, paths[start : start + size]))

        with self._whole():
            for slot in range(SLOTS):
                for pipe in self.slots:
                    give(pipe, slot)
            while missing:
                ready: list[Any] = wait(self.slots, LOOK)
                if not ready and any(map(_ended, self.pids)):
                    raise EOFError
                for pipe in ready:
                    slot, start, found = pipe.recv()
                    end = start + len(found)
                    if into is not None:
                        into[start:end] = self.slots[pipe][slot, : len(found)]
                    readable[start:end] = found
                    missing -= len(found)
                    give(pipe, slot)
        return readable

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Ends all when something fails: an answer under way must not be taken for the next one."""
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, EOFError | OSError):
                raise UserError(
                    "a process that decodes pictures died or could not start, perhaps for want of "
                    "memory; free some, then train again or resume the run"
                ) from None
            raise


def _fork(pipe: Connection, slots: NDArray[np.uint8]) -> int:
    parent = os.getpid()
    with warnings.catch_warnings():
        # Python warns of threads that hold a lock for ever in a fork; this one takes none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            _serve(pipe, slots, parent)
        finally:
            os._exit(0)  # and not back into the caller's program
    return pid


def _serve(pipe: Connection, slots: NDArray[np.uint8], parent: int) -> None:
    """A process's life: decodes what it is sent until the pipe is closed or the parent gone."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent may want a last batch of pictures
        signal.signal(number, signal.SIG_IGN)
    gc.freeze()  # what was inherited, tensors on a GPU perhaps, is never freed here
    warnings.simplefilter("ignore")  # else each process would repeat them
    for file in map(int, os.listdir("/proc/self/fd")):
        if file > 2 and file != pipe.fileno():  # a run's lock, a GPU: they are not to outlive it
            with suppress(OSError):
                os.close(file)
    with suppress(EOFError, OSError):
        pipe.send("ready")
        while os.getppid() == parent:
            if pipe.poll(LOOK):
                slot, start, paths = pipe.recv()
                found = [pictures.put(path, slots[slot, at]) for at, path in enumerate(paths)]
                pipe.send((slot, start, found))


def _ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(pids: list[int], slots: dict[Connection, Any], parent: int) -> None:
    if os.getpid() != parent:  # a copy in some other fork: the processes are not its own
        return
    for pipe in slots:
        pipe.close()
    for pid in pids:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)  # there is nothing that they could leave half done
            os.waitpid(pid, 0)
