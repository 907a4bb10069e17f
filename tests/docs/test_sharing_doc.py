"""The commands in docs/sharing.md work as described, on a stand-in of the hub."""

import re
import shlex
from pathlib import Path

import pytest

from fullmatch.cli import main
from fullmatch.hub.shared_model import FILES, README
from tests.hub.conftest import hub as hub
from tests.hub.hub_server import Hub
from tests.patterns import find_blocks
from tests.served import copy_run, digit_files, digits_run

TEXT = (Path(__file__).parents[2] / "docs" / "sharing.md").read_text(encoding="utf-8")


def test_commands(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    copy_run(digits_run(), tmp_path / "runs" / "pictures")
    digit_files(tmp_path / "new", 2)
    (commands,) = find_blocks("sh", TEXT)
    for line in commands.splitlines():
        main(shlex.split(line)[1:])
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 3
    (code,) = find_blocks("python", TEXT)
    exec(code, {})


def test_every_file_is_listed() -> None:
    table = TEXT.split("| --- |")[1].split("**Not shared**")[0]
    assert {*re.findall(r"`([\w.]+)`", table)} == {*FILES, README}
