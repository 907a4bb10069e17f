"""The pool decodes what threads would, and its processes neither outlive nor hang the caller."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fullmatch.data.stores import decoding, pictures
from fullmatch.data.stores.decoding import DecoderPool
from fullmatch.errors import UserError

SHAPE = (3, 8, 6)
MakePool = Callable[..., DecoderPool]


@pytest.fixture
def make_pool() -> Iterator[MakePool]:
    pools: list[DecoderPool] = []

    def make(
        processes: int = 2, shape: tuple[int, int, int] = SHAPE, **options: Any
    ) -> DecoderPool:
        pools.append(DecoderPool(shape, processes, **options))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


@pytest.fixture
def mixed(tmp_path: Path) -> list[str]:
    """Every format, many sizes and modes; one is damaged, one missing."""
    rng = np.random.default_rng(0)
    names = [f"{i}{end}" for i, end in enumerate(sorted(pictures.EXTENSIONS) * 3)]
    for i, name in enumerate(names):
        pixels = rng.integers(0, 256, (5 + 7 * i % 40, 9 + 5 * i % 31, 3), np.uint8)
        gray = i % 3 == 0 or name.endswith(".pgm")
        Image.fromarray(pixels).convert("L" if gray else "RGB").save(tmp_path / name)
    paths = [str(tmp_path / name) for name in names]
    Path(paths[14]).write_bytes(Path(paths[14]).read_bytes()[:40])
    Path(paths[17]).unlink()
    return paths


def decode(pool: DecoderPool, paths: list[str], shape: tuple[int, int, int] = SHAPE) -> np.ndarray:
    """Decode with the pool, check against decoding here, and return the readable pictures."""
    out = np.zeros((len(paths), *shape), np.uint8)
    readable = pool.decode(paths, out)
    expected = np.zeros_like(out)
    assert readable == [pictures.decode_into(path, expected[i]) for i, path in enumerate(paths)]
    assert (out[readable] == expected[readable]).all()
    return out[readable]


def empty(paths: list[str]) -> np.ndarray:
    return np.empty((len(paths), *SHAPE), np.uint8)


def running(pid: int) -> bool:
    """Whether the process is alive; a container may never reap the zombies of others."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def all_gone(pids: list[int]) -> bool:
    """Whether all processes end within five seconds."""
    for _ in range(500):
        if not any(map(running, pids)):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("shape", [SHAPE, (1, 9, 9)])
@pytest.mark.parametrize("processes", [1, 3])
def test_pixels_and_readable_files_are_the_same(
    make_pool: MakePool, mixed: list[str], processes: int, shape: tuple[int, int, int]
) -> None:
    pool = make_pool(processes, shape)
    assert len(decode(pool, mixed, shape)) == len(mixed) - 2
    assert decode(pool, mixed[:1], shape).any()
    assert pool.decode([], np.empty((0, *shape), np.uint8)) == []


def test_many_more_pictures_than_slots(make_pool: MakePool, mixed: list[str]) -> None:
    many = mixed * 5
    assert len(many) > 3 * 2 * decoding.SLOTS * decoding.SLOT_SIZE
    pool = make_pool(2)
    for paths in (many, many[::-1]):
        decode(pool, paths)


def test_death_during_a_batch_is_an_error_in_one_line(
    make_pool: MakePool, mixed: list[str]
) -> None:
    def die_at_one_path(path: str, out: np.ndarray) -> bool:
        if path == mixed[20]:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    pool = make_pool(3, decode=die_at_one_path)
    for _ in range(2):  # asking again gives the same error
        with pytest.raises(UserError, match="a process that decodes pictures died") as error:
            pool.decode(mixed, empty(mixed))
        assert "\n" not in str(error.value)
        assert not any(map(running, pool.pids))


def test_death_between_two_batches(make_pool: MakePool, mixed: list[str]) -> None:
    pool = make_pool(2)
    decode(pool, mixed)
    os.kill(pool.pids[1], signal.SIGKILL)
    with pytest.raises(UserError, match="decodes pictures died"):
        pool.decode(mixed, empty(mixed))


def test_death_is_noticed_while_another_process_holds_the_pipe(
    make_pool: MakePool, mixed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    duplicates: list[int] = []

    def pipe() -> object:
        ours, theirs = Pipe()
        duplicates.append(os.dup(theirs.fileno()))
        return ours, theirs

    monkeypatch.setattr(decoding, "Pipe", pipe)
    pool = make_pool(1, poll_seconds=0.05)
    os.kill(pool.pids[0], signal.SIGKILL)
    with pytest.raises(UserError, match="decodes pictures died"):
        pool.decode(mixed, empty(mixed))
    for handle in duplicates:
        os.close(handle)


def test_processes_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    fork = os.fork
    pids: list[int] = []

    def limited() -> int:
        if pids:
            raise BlockingIOError("too many processes")
        pid = fork()
        pids.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", limited)
    with pytest.raises(UserError, match="could not start"):
        DecoderPool(SHAPE, 2)
    assert len(pids) == 1
    assert not running(pids[0])


def test_an_interrupted_batch_is_not_mistaken_for_the_next_one(
    make_pool: MakePool, mixed: list[str]
) -> None:
    pool = make_pool(1)
    with pytest.raises(ValueError, match="broadcast"):
        pool.decode(mixed, np.empty((len(mixed), 3, 5, 5), np.uint8))
    with pytest.raises(UserError):
        pool.decode(mixed, empty(mixed))


def test_no_process_is_left_when_closed_or_garbage_collected() -> None:
    closed, dropped = DecoderPool(SHAPE, 2), DecoderPool(SHAPE, 2)
    pids = closed.pids + dropped.pids
    assert len(set(pids)) == 4
    assert all(map(running, pids))
    closed.close()
    assert [running(pid) for pid in pids] == [False, False, True, True]
    del dropped
    assert not any(map(running, pids))


def test_signals_do_not_stop_the_workers(make_pool: MakePool, mixed: list[str]) -> None:
    """Ctrl-C reaches all processes, and the parent still needs pictures for its last step."""
    pool = make_pool(2)
    for pid in pool.pids:
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    decode(pool, mixed)


def test_workers_close_the_files_of_the_parent(
    make_pool: MakePool, tmp_path: Path, mixed: list[str]
) -> None:
    with (tmp_path / "lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        pool = make_pool(2)
    with (tmp_path / "lock").open("w") as second:
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    decode(pool, mixed)


def test_closing_in_another_fork_does_not_end_the_workers(
    make_pool: MakePool, mixed: list[str]
) -> None:
    pool = make_pool(1)
    pid = os.fork()
    if pid == 0:
        try:
            pool.close()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    decode(pool, mixed)


def test_workers_end_when_the_parent_is_killed() -> None:
    """The second time another process holds their pipes open, so they have to poll."""
    program = (
        "import os, time; from fullmatch.data.stores.decoding import DecoderPool\n"
        "pool = DecoderPool((3, 8, 8), 3); holder = os.fork() if {held} else -1\n"
        "if holder: print(*pool.pids, holder, flush=True)\n"
        "time.sleep(60)"
    )
    for held in (False, True):
        command = [sys.executable, "-c", program.format(held=held)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
            assert parent.stdout is not None
            *pids, holder = [int(pid) for pid in parent.stdout.readline().split()]
            assert len(pids) == 3
            assert all(map(running, pids))
            parent.kill()
        assert all_gone(pids)
        if held:
            os.kill(holder, signal.SIGKILL)


def test_no_worker_returns_into_the_program() -> None:
    program = (
        "from fullmatch.data.stores import decoding; from fullmatch.errors import UserError\n"
        "decoding._run_worker = lambda *_: None\n"
        "try:\n    decoding.DecoderPool((3, 8, 8), 3)\n"
        "except UserError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert done.stdout.count(b"could not start") == 1
    assert done.stderr == b""


def test_a_script_that_ends_leaves_no_process(tmp_path: Path) -> None:
    """It needs no main guard, and buffered output from before the fork is written once."""
    script = tmp_path / "script.py"
    script.write_text(
        "from fullmatch.data.stores.decoding import DecoderPool\n"
        "print('once')\n"
        "pool = DecoderPool((3, 8, 8), 3)\n"
        "print(*pool.pids)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    first, pids = done.stdout.splitlines()
    assert first == "once"
    assert all_gone([int(pid) for pid in pids.split()])
