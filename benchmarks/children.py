"""Commands in processes of their own, which can be killed and starved; only for Linux."""

import fcntl
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

CALLS = ("fsync", "mkdir", "open", "remove", "rename", "replace", "rmdir", "truncate", "unlink")
TIMES = {"seconds", "sha256", "metrics_size"}  # parts of files that differ from run to run
UNCOMPARED = {"report.html", "manifest.json", ".lock"}
CRASHED = 70  # exit code of an unexpected error
PIPE_SIZE = 2**20  # bytes, more than any of these commands prints
PIPES: dict[int, tuple[int, Path]] = {}  # of the processes that run, and where their output goes
Hook = Callable[[int], None]  # called with the number of each watched system call


def fork_command(
    argv: Sequence[object], output: Path, prepare: Callable[[], object] = lambda: None
) -> int:
    """Start `fullmatch ARGV` in a copy of this process; returns its id.

    What it prints goes through a pipe, to which no limit on files applies.
    """
    sys.stdout.flush()
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    child = os.fork()
    if child == 0:
        code = CRASHED
        try:  # nothing of this may get back to what the parent was doing
            code = run_child([str(argument) for argument in argv], writer, prepare)
        finally:
            os._exit(code)
    os.close(writer)
    PIPES[child] = (reader, output)
    return child


def run_child(argv: list[str], writer: int, prepare: Callable[[], object]) -> int:
    from fullmatch.cli import main

    for stream in (1, 2):
        os.dup2(writer, stream)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        prepare()
        main(argv)
        return 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
        return CRASHED
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def wait(child: int) -> int:
    """The exit code of a process, or minus the signal that ended it."""
    return finish(child, os.waitpid(child, 0)[1])


def finish(child: int, status: int) -> int:
    """Write down what a process has printed."""
    reader, output = PIPES.pop(child)
    with os.fdopen(reader, "rb") as pipe:
        output.write_bytes(pipe.read())
    return os.waitstatus_to_exitcode(status)


def wait_for(child: int, seconds: float) -> int | None:
    """The same, or None when it still runs after some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return finish(child, status)
        time.sleep(0.01)
    return None


def watch_calls(before: Hook, after: Hook = lambda number: None) -> None:
    """In this process, call hooks around every system call that changes files."""
    count = 0

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal count
            if function.__name__ == "open" and not args[1] & (os.O_WRONLY | os.O_RDWR):
                return function(*args, **options)
            count += 1
            number = count
            before(number)
            result = function(*args, **options)
            after(number)
            return result

        return call

    for name in CALLS:
        setattr(os, name, watched(getattr(os, name)))


def kill_here() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def limit_files(size: int, *, deadly: bool) -> None:
    """From now on a file can have so many bytes; one more is an error, or the end."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if deadly else signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


def read_outputs(run: Path) -> dict[str, object]:
    """All that a finished run has written, without times; a checkpoint by its place in the list."""
    outputs: dict[str, object] = {}
    for path in sorted(run.rglob("*")):
        name = str(path.relative_to(run))
        if path.is_dir() or path.name in UNCOMPARED or name.startswith("checkpoints/"):
            continue
        outputs[name] = read_output(path)
    newest = max((run / "checkpoints").glob("step-*"))
    return outputs | {each.name: read_output(each) for each in newest.iterdir()}


def compare(expected: dict[str, object], outputs: dict[str, object]) -> list[str]:
    """Names of the outputs that are not equal."""
    return [name for name in expected | outputs if expected.get(name) != outputs.get(name)]


def read_output(path: Path) -> object:
    if path.suffix == ".json":
        return drop_times(json.loads(path.read_text()))
    if path.suffix == ".jsonl":
        return [drop_times(json.loads(line)) for line in path.read_text().splitlines()]
    if path.suffix == ".safetensors" and path.stat().st_size:
        tensors = load_file(path)
        return {name: (each.dtype, each.shape, each.tobytes()) for name, each in tensors.items()}
    return path.read_bytes()


def drop_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: drop_times(part) for key, part in value.items() if key not in TIMES}
    return [drop_times(part) for part in value] if isinstance(value, list) else value


def warm_up() -> None:
    """Import what training needs, once, for processes that are forked from this one."""
    import tests.warm  # noqa: F401

    import fullmatch.api.training
    import fullmatch.experiment.verification  # noqa: F401
