"""The commands of docs/extending.md run as they stand."""

import shlex
from pathlib import Path

import pytest

from fullmatch.cli import main
from fullmatch.storage.run_folder import RunFolder

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
COMMANDS = [
    line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("fullmatch ")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    main(shlex.split(command)[1:])
    (run,) = (tmp_path / "runs").iterdir()
    assert RunFolder(run).read_result().steps == 20
