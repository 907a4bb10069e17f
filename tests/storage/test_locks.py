"""One process at a time in a folder, on every operating system."""

import subprocess
import sys
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.storage.locks import locked

LOCK = """
import sys
from pathlib import Path
from fullmatch.errors import UserError
from fullmatch.storage.locks import locked
try:
    with locked(Path(sys.argv[1])):
        print("locked", flush=True)
        sys.stdin.read()
except UserError as error:
    print(error)
"""
# A Windows without fcntl, whose lock calls are recorded.
WITHOUT_FCNTL = """
import sys, types
calls = []
msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_NBLCK = 2
def locking(handle, mode, size):
    calls.append((mode, size))
    if len(calls) > 1:
        raise OSError(13, "Permission denied")
msvcrt.locking = locking
sys.modules["fcntl"], sys.modules["msvcrt"] = None, msvcrt
from pathlib import Path
from fullmatch.errors import UserError
from fullmatch.storage.locks import locked
folder = Path(sys.argv[1])
with locked(folder):
    try:
        with locked(folder):
            raise AssertionError
    except UserError as error:
        print(error)
assert calls == [(2, 1), (2, 1)]
"""


def python(code: str, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    message = f"another process is training in {tmp_path}; wait for it to end"
    with python(LOCK, tmp_path) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "locked\n"
        with pytest.raises(UserError, match=message), locked(tmp_path):
            pass
        assert python(LOCK, tmp_path).communicate()[0] == f"{message}\n"
        first.kill()  # nothing is left behind that would keep others out
    with locked(tmp_path):
        pass


def test_without_fcntl(tmp_path: Path) -> None:
    process = python(WITHOUT_FCNTL, tmp_path)
    output, _ = process.communicate()
    assert process.returncode == 0
    assert output == f"another process is training in {tmp_path}; wait for it to end\n"


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    message = f"cannot write to {tmp_path / 'gone'}: No such file or directory"
    with pytest.raises(UserError, match=message), locked(tmp_path / "gone"):
        pass
