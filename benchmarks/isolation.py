"""A function in a process of its own, with limits on its time and memory; only for Linux."""

import faulthandler
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cyclopts import CycloptsError

from fullmatch.errors import UserError

SECONDS = 10  # of computing, however busy the machine is
PATIENCE = 60.0  # seconds to wait, also for a process that computes nothing
STACK_SECONDS = 5.0  # for a process that is stopped to write down where it is
MEMORY = 2 * 2**30
CODES = {"ok": 0, "refused": 2, "traceback": 3, "memory": 4, "executed": 5}
# What no file may make us do.
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pty.spawn")


class Outcome(StrEnum):
    """How a case ended."""

    OK = "ok"
    REFUSED = "refused"  # one line that says what is wrong
    TRACEBACK = "traceback"
    MEMORY = "memory"  # beyond the limit
    EXECUTED = "executed"  # a file ran code
    HANG = "hang"
    CRASH = "crash"  # ended by a signal
    NONSENSE = "nonsense"  # went well, and says NaN

    @property
    def good(self) -> bool:
        return self in (Outcome.OK, Outcome.REFUSED)


@dataclass(frozen=True)
class Ending:
    """How a case ended, and what it printed."""

    outcome: Outcome
    output: str


def run_isolated(work: Callable[[], object], log: Path, patience: float = PATIENCE) -> Ending:
    """Do the work in a copy of this process, which is stopped when it takes too long."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os._exit(run_child(work, log))
    end, waited = time.monotonic() + patience, False
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > end:
            # Its stack goes to the log; where even that fails, it is killed.
            os.kill(child, signal.SIGKILL if waited else signal.SIGABRT)
            end, waited = time.monotonic() + STACK_SECONDS, True
        time.sleep(0.002)
    output = log.read_text(errors="replace")
    if waited:
        computed = usage.ru_utime + usage.ru_stime
        text = f"{output}\nwaited {patience:.0f} s, of which {computed:.1f} s computing"
        return Ending(Outcome.HANG, text)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return Ending(Outcome.HANG, output)
    if os.WIFSIGNALED(status):
        return Ending(Outcome.CRASH, f"{output}\nsignal {os.WTERMSIG(status)}")
    names = {code: name for name, code in CODES.items()}
    return Ending(Outcome(names.get(os.WEXITSTATUS(status), "crash")), output)


def run_child(work: Callable[[], object], log: Path) -> int:
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(handle, stream)
    sys.stdout = open(1, "w", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="surrogateescape", closefd=False)  # noqa: SIM115
    faulthandler.enable()
    faulthandler.register(signal.SIGXCPU, chain=True)
    set_limits()
    executed: list[str] = []
    sys.addaudithook(lambda event, _: executed.append(event) if event in FORBIDDEN else None)
    code = CODES["executed"] if (code := attempt(work)) is None or executed else code
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def attempt(work: Callable[[], object]) -> int:
    try:
        work()
    except (UserError, CycloptsError) as error:
        print(f"refused: {error}")
        return CODES["refused"]
    except SystemExit as end:
        return CODES["ok"] if not end.code else CODES["refused"]
    except MemoryError:
        traceback.print_exc()
        return CODES["memory"]
    except BaseException:
        traceback.print_exc()
        return CODES["traceback"]
    return CODES["ok"]


def set_limits(more: int = MEMORY) -> None:
    """As much memory as the process has reserved, and so much more; and some time to compute."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit_time()


def limit_time() -> None:
    """Some seconds to compute from now on."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + SECONDS, resource.RLIM_INFINITY))
