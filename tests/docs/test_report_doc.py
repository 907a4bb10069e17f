"""The Python code in docs/report.md works as it is."""

import shutil
from pathlib import Path

import pytest
from PIL import Image

from tests.patterns import find_all, find_blocks
from tests.trained_runs import train_digits

DOCS = Path(__file__).parents[2] / "docs"


def test_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / "report.md").read_text(encoding="utf-8")
    (code,) = find_blocks("python", text)
    shutil.copytree(train_digits(), tmp_path / "runs" / "digits-fullmatch-001")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert (tmp_path / "curves.png").exists()


def test_images_exist_and_are_small() -> None:
    text = (DOCS / "report.md").read_text(encoding="utf-8")
    for name in (*find_all(r"\]\((images/[^)]+)\)", text), "images/report-dark.png"):
        assert (DOCS / name).stat().st_size < 300_000
        with Image.open(DOCS / name) as image:
            assert image.width >= 600
