"""Every command and every piece of code in the README, run as written but for its length."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fullmatch.cli import main
from tests.patterns import find_all, find_blocks
from tests.small_pictures import write_pets

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PERFORMANCE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
PARTS = ("train", "test")  # of a data set
# What makes a command short, and leaves what it does alone.
SHORT = {
    "train": "--steps 2 --set model.name=wrn-10-1 --set training.batch=10 --set training.ratio=1",
    "bench": "--steps 1 --model wrn-10-1 --batch 4",
    "sweep": "--steps 2 --score test --model wrn-10-1 --set training.batch=10",
}


def blocks(language: str) -> list[str]:
    return find_blocks(language, README + PERFORMANCE)


def lines(program: str) -> list[list[str]]:
    """The commands of a program, as words."""
    found = [
        shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines()
    ]
    inline = [shlex.split(words) for words in re.findall(rf"`({program} [^`]+)`", README)]
    return [words[1:] for words in found + inline if words and words[0] == program]


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_pets(tmp_path).rename("pictures")
    shutil.copytree("pictures/test", "new")
    noise = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for part in PARTS:
        arrays[f"{part}_x"] = noise.integers(0, 256, (500, 32, 32, 3), np.uint8)
        arrays[f"{part}_y"] = np.arange(500) % 10
    np.savez(tmp_path / "cifar10.npz", **arrays)
    monkeypatch.setenv("FULLMATCH_DATA", str(tmp_path))
    commands = lines("fullmatch")
    assert len(commands) >= 8
    for command in commands:
        main([*command, *SHORT.get(command[0], "").split()])


def test_make_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {words[0] for words in lines("make")}
    assert {"demo", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("L", (8, 8)).save("digit.png")
    for block in blocks("python"):
        exec(compile(block.replace("steps=20)", "steps=2)"), "README.md", "exec"), {})
    assert "tensor" in capsys.readouterr().out


def test_links() -> None:
    for target in find_all(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target
