"""Reports from Python."""

from html import unescape
from pathlib import Path

import pytest

import fullmatch
from tests.served import copy_run, digits_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_run(digits_run(), tmp_path_factory.mktemp("reported") / "run")


def test_one_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = fullmatch.report(run)
    assert page.path == run / "report.html"
    assert page.html.startswith("<!doctype html>")
    frame = page._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert page.html in unescape(frame)  # escaped, so that it stays inside its frame
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    page.open()
    assert opened == [page.path.resolve().as_uri()]


def test_several_runs(run: Path, tmp_path: Path) -> None:
    page = fullmatch.report(run, digits_run(), out=tmp_path / "both.html")
    assert page.path == tmp_path / "both.html"
    assert "Comparison of 2 runs" in page.html
    assert fullmatch.load(run).report(tmp_path / "one.html").path.exists()
