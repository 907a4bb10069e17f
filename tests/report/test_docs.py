"""The Python of docs/report.md runs as it is written."""

import re
import shutil
from pathlib import Path

import pytest
from PIL import Image

DOCS = Path(__file__).parents[2] / "docs"


def test_the_example(digits_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "report.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    shutil.copytree(digits_run, tmp_path / "runs" / "digits-fullmatch-001")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert (tmp_path / "curves.png").exists()


def test_pictures_are_there_and_small() -> None:
    text = (DOCS / "report.md").read_text(encoding="utf-8")
    for name in (*re.findall(r"\]\((images/[^)]+)\)", text), "images/report-dark.png"):
        assert (DOCS / name).stat().st_size < 300_000
        with Image.open(DOCS / name) as image:
            assert image.width >= 600
