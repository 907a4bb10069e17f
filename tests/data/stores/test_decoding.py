"""Processes decode what threads would, and neither outlive nor hang whoever asked them."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Pipe
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fullmatch.data.stores import decoding as decoders
from fullmatch.data.stores import pictures
from fullmatch.data.stores.decoding import Decoders
from fullmatch.errors import UserError

SHAPE = (3, 8, 6)
Make = Callable[..., Decoders]


@pytest.fixture
def forked() -> Iterator[Make]:
    made: list[Decoders] = []

    def make(processes: int = 2, shape: tuple[int, int, int] = SHAPE) -> Decoders:
        made.append(Decoders(shape, processes))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def mixed(tmp_path: Path) -> list[str]:
    """Every format, many sizes and modes; one is damaged, one missing."""
    rng = np.random.default_rng(0)
    names = [f"{i}{end}" for i, end in enumerate(sorted(pictures.EXTENSIONS) * 3)]
    for i, name in enumerate(names):
        pixels = rng.integers(0, 256, (5 + 7 * i % 40, 9 + 5 * i % 31, 3), np.uint8)
        grey = i % 3 == 0 or name.endswith(".pgm")
        Image.fromarray(pixels).convert("L" if grey else "RGB").save(tmp_path / name)
    paths = [str(tmp_path / name) for name in names]
    Path(paths[14]).write_bytes(Path(paths[14]).read_bytes()[:40])
    Path(paths[17]).unlink()
    return paths


def decode(one: Decoders, paths: list[str], shape: tuple[int, int, int] = SHAPE) -> np.ndarray:
    into = np.zeros((len(paths), *shape), np.uint8)
    readable = one.decode(paths, into)
    expected = np.zeros_like(into)
    assert readable == [pictures.put(path, expected[i]) for i, path in enumerate(paths)]
    assert (into[readable] == expected[readable]).all()
    return into[readable]


def running(pid: int) -> bool:
    """Whether it still does something; a container may never clear away the dead of others."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pids: list[int]) -> bool:
    for _ in range(500):
        if not any(map(running, pids)):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("shape", [SHAPE, (1, 9, 9)])
@pytest.mark.parametrize("processes", [1, 3])
def test_same_pixels_and_the_same_files_readable(
    forked: Make, mixed: list[str], processes: int, shape: tuple[int, int, int]
) -> None:
    one = forked(processes, shape)
    assert len(decode(one, mixed, shape)) == len(mixed) - 2
    assert decode(one, mixed[:1], shape).any() and one.decode([], np.empty((0, *shape))) == []


def test_many_more_pictures_than_room(forked: Make, mixed: list[str]) -> None:
    many = mixed * 5
    assert len(many) > 3 * 2 * decoders.SLOTS * decoders.ROOM
    one = forked(2)
    for turn in (many, many[::-1]):
        decode(one, turn)


def test_death_amid_the_work_is_one_line_and_no_wait(
    forked: Make, mixed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(path: str, place: np.ndarray) -> bool:
        if path == mixed[20]:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    monkeypatch.setattr(pictures, "put", put)
    one = forked(3)
    for _ in range(2):  # and whoever asks again learns the same
        with pytest.raises(UserError, match="a process that decodes pictures died") as error:
            one.decode(mixed, np.empty((len(mixed), *SHAPE), np.uint8))
        assert "\n" not in str(error.value)
        assert not any(map(running, one.pids))


def test_death_between_two_batches(forked: Make, mixed: list[str]) -> None:
    one = forked(2)
    decode(one, mixed)
    os.kill(one.pids[1], signal.SIGKILL)
    with pytest.raises(UserError, match="decodes pictures died"):
        one.decode(mixed, np.empty((len(mixed), *SHAPE), np.uint8))


def test_death_is_seen_even_when_somebody_else_holds_the_pipe(
    forked: Make, mixed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []

    def pipe() -> object:
        ours, theirs = Pipe()
        held.append(os.dup(theirs.fileno()))
        return ours, theirs

    monkeypatch.setattr(decoders, "Pipe", pipe)
    monkeypatch.setattr(decoders, "LOOK", 0.05)
    one = forked(1)
    os.kill(one.pids[0], signal.SIGKILL)
    with pytest.raises(UserError, match="decodes pictures died"):
        one.decode(mixed, np.empty((len(mixed), *SHAPE), np.uint8))
    for handle in held:
        os.close(handle)


def test_processes_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    fork, pids = os.fork, []

    def limited() -> int:
        if pids:
            raise BlockingIOError("too many processes")
        pid = fork()
        pids.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", limited)
    with pytest.raises(UserError, match="could not start"):
        Decoders(SHAPE, 2)
    assert len(pids) == 1 and not running(pids[0])


def test_an_interrupted_batch_is_not_taken_for_the_next_one(forked: Make, mixed: list[str]) -> None:
    one = forked(1)
    with pytest.raises(ValueError, match="broadcast"):
        one.decode(mixed, np.empty((len(mixed), 3, 5, 5), np.uint8))
    with pytest.raises(UserError):
        one.decode(mixed, np.empty((len(mixed), *SHAPE), np.uint8))


def test_none_is_left_when_closed_or_dropped() -> None:
    one, other = Decoders(SHAPE, 2), Decoders(SHAPE, 2)
    pids = one.pids + other.pids
    assert len(set(pids)) == 4 and all(map(running, pids))
    one.close()
    assert [running(pid) for pid in pids] == [False, False, True, True]
    del other
    assert not any(map(running, pids))


def test_a_signal_to_all_leaves_pictures_for_the_last_step(forked: Make, mixed: list[str]) -> None:
    one = forked(2)
    for pid in one.pids:
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    decode(one, mixed)


def test_files_of_the_parent_are_let_go(forked: Make, tmp_path: Path, mixed: list[str]) -> None:
    with (tmp_path / "lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        one = forked(2)
    with (tmp_path / "lock").open("w") as second:
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    decode(one, mixed)


def test_another_fork_does_not_end_them(forked: Make, mixed: list[str]) -> None:
    one = forked(1)
    pid = os.fork()
    if pid == 0:
        try:
            one.close()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    decode(one, mixed)


def test_they_end_with_a_parent_that_is_killed() -> None:
    """The second time another process holds their pipes open, and they have to look."""
    program = (
        "import os, time; from fullmatch.data.stores.decoding import Decoders\n"
        "one = Decoders((3, 8, 8), 3); holder = os.fork() if {held} else -1\n"
        "if holder: print(*one.pids, holder, flush=True)\n"
        "time.sleep(60)"
    )
    for held in (False, True):
        command = [sys.executable, "-c", program.format(held=held)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
            assert parent.stdout is not None
            *pids, holder = [int(pid) for pid in parent.stdout.readline().split()]
            assert len(pids) == 3 and all(map(running, pids))
            parent.kill()
        assert gone(pids)
        if held:
            os.kill(holder, signal.SIGKILL)


def test_none_comes_back_into_the_program() -> None:
    program = (
        "from fullmatch.data import decoders; from fullmatch.errors import UserError\n"
        "decoders._serve = lambda *_: None\n"
        "try:\n    decoders.Decoders((3, 8, 8), 3)\n"
        "except UserError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert done.stdout.count(b"could not start") == 1 and done.stderr == b""


def test_a_script_that_just_ends_leaves_none(tmp_path: Path) -> None:
    """No guard around its main part; what it wrote before the fork is written once."""
    script = tmp_path / "script.py"
    script.write_text(
        "from fullmatch.data.stores.decoding import Decoders\n"
        "print('once')\n"
        "one = Decoders((3, 8, 8), 3)\n"
        "print(*one.pids)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    first, pids = done.stdout.splitlines()
    assert first == "once" and gone([int(pid) for pid in pids.split()])
