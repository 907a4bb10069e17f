"""The examples in docs/python.md, run as written but for their length."""

import re
from pathlib import Path
from typing import Any

import pytest

import fullmatch
from tests.patterns import find_blocks
from tests.served import digit_files
from tests.small_pictures import write_pets

TEXT = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
SHORT = {"labels=40": "labels=20", "steps=300": "steps=6", "step >= 100": "step >= 3"}
TINY = {"training.batch": 4, "training.ratio": 2, "training.log_every": 3, "model.name": "wrn-10-1"}


def shorten(code: str) -> str:
    """The same code for fewer steps of a smaller network."""
    for long, short in SHORT.items():
        code = code.replace(long, short)
    code = code.replace('"training.batch": 32, "optimizer.rate": 0.02', '"optimizer.rate": 0.02')
    code = re.sub(r"settings=\{(.*?)\}", r"settings={\1} | TINY", code)
    code = re.sub(r"steps=100\b", "steps=6", code)
    return re.sub(r'("digits", labels=20, steps=6)', r"\1, settings=TINY", code)


def test_all_code_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    digit_files(tmp_path / "new", 3)
    (write_pets(tmp_path) / "labeled" / "cat").rename("cat")  # of one class: no plan is made
    Path("pets").rename("pictures")
    space: dict[str, Any] = {"TINY": TINY}
    for block in find_blocks("python", TEXT):
        exec(compile(shorten(block), "python.md", "exec"), space)
    output = capsys.readouterr().out
    assert "<FinishedRun runs/digits-fullmatch-001: test accuracy" in output
    assert "stopped after 6 of 6" not in output
    assert "(3, 10)" in output
    assert "# Classifier for digits" in output


def test_every_function_is_described() -> None:
    for name in fullmatch.__all__:
        assert f"fullmatch.{name}" in TEXT or f"`{name}`" in TEXT or name[0].isupper(), name
