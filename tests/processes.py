"""Command lines in separate processes, which tests can kill; forked, to start fast."""

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import fullmatch as package

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.warm"])
# The fork server finds modules by its environment, not by the path of this process.
HOMES = (Path(__file__).parents[1], Path(package.__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(map(str, HOMES))


def work(argv: Sequence[str], output: str, disk: float) -> None:
    """Run `fullmatch ARGV` with its output in a file and a slow disk."""
    handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    import torch

    from fullmatch import cli
    from fullmatch.storage import checkpoints as checkpoint

    torch.set_num_threads(1)
    sync = checkpoint.sync

    def slow(path: Path) -> None:
        time.sleep(disk)
        sync(path)

    checkpoint.sync = slow
    cli.main(list(argv))


@contextlib.contextmanager
def fullmatch(*argv: object, output: Path, disk: float = 0.0) -> Iterator[BaseProcess]:
    process = CONTEXT.Process(target=work, args=([str(a) for a in argv], str(output), disk))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def wait_until(happened: Callable[[], object], process: BaseProcess, seconds: float = 60) -> None:
    """Wait until it happened or the process ended; fail after a timeout."""
    end = time.monotonic() + seconds
    while not happened() and process.is_alive():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.002)
