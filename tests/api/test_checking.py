"""The check of pictures from Python."""

import shutil
from pathlib import Path

import pytest

import fullmatch
from fullmatch.errors import UserError
from tests.small_pictures import write_pets


def test_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pets = write_pets(tmp_path)
    shutil.rmtree(pets / "labeled" / "dög 2")
    (pets / "unlabeled" / "bad.jpg").write_bytes(b"")
    report = fullmatch.check(pets, progress=False)
    assert capsys.readouterr().out == ""
    assert not report.can_train
    assert report.plan is None
    assert any("unlabeled/bad.jpg" in finding.files for finding in report.findings)
    assert "Not ready: fix what is marked ✗" in str(report)
    assert report._repr_html_().startswith("<iframe")
    page = report.write(tmp_path / "check.json")
    assert page == tmp_path / "check.html"
    assert page.read_text() == report.html


def test_benchmarks_need_no_check() -> None:
    with pytest.raises(UserError, match="is a benchmark"):
        fullmatch.check("digits")
