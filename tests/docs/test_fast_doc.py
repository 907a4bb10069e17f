"""docs/fast.md: its table is the preset, and its command works."""

import shlex
from pathlib import Path

import pytest

from fullmatch.cli import main
from fullmatch.experiment.settings import resolve
from fullmatch.storage.run_folder import RunFolder
from tests.patterns import find_blocks
from tests.small_runs import TINY

TEXT = (Path(__file__).parents[2] / "docs" / "fast.md").read_text(encoding="utf-8")


def test_the_table_is_the_preset() -> None:
    paper, fast = (resolve(data="cifar10", labels=250, budget=name) for name in ("paper", "fast"))
    written = {"none": None, "7/16": 7 / 16, "1/2": 1 / 2}
    rows = [line.split("|")[1:4] for line in TEXT.splitlines() if line.startswith("| `")]
    for name, *values in ([cell.strip(" `") for cell in row] for row in rows):
        section, field = name.split(".")
        for config, text in zip((paper, fast), values, strict=True):
            actual = getattr(getattr(config, section), field)
            plain = text.replace(",", "")
            assert written.get(text, plain) == actual or str(actual) == plain
    assert len(rows) == 6


def test_the_command_on_digits_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = find_blocks("", TEXT)
    (command,) = (line for line in block.splitlines() if "digits" in line)
    settings = [word for setting in TINY for word in ("--set", setting)]
    main([*shlex.split(command)[1:], *settings, "--out", "run"])
    assert 'pseudo_labels = "teacher"' in RunFolder(Path("run")).config.read_text()
