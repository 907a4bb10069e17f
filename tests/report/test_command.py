"""`fullmatch report` as a user calls it."""

from pathlib import Path

import pytest
from cyclopts import App

from fullmatch.commands.report import report
from fullmatch.errors import UserError
from tests.report.reading import read
from tests.report.written import write_run

app = App(result_action="return_value")
app.command(report)


def call(*words: object) -> None:
    app(["report", *map(str, words)], exit_on_error=False)


def test_one_run(digits_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(digits_run)
    found = read((digits_run / "report.html").read_text(encoding="utf-8"))
    assert len(found.named("img")) > 12  # the real digits
    assert str(digits_run / "report.html") in capsys.readouterr().out


def test_own_pictures(pets_run: Path, tmp_path: Path) -> None:
    call(pets_run, "--out", tmp_path / "pets.html")
    found = read((tmp_path / "pets.html").read_text(encoding="utf-8"))
    assert "dög 2" in found.text and len(found.named("img")) >= 6
    assert not (pets_run / "report.html").exists()


def test_several_runs(
    digits_run: Path, pets_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call(digits_run, pets_run)
    assert "not measured on the same test images" in (tmp_path / "report.html").read_text()


def test_pictures_that_are_gone_or_changed(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    call(path)
    text = read((path / "report.html").read_text(encoding="utf-8")).text
    assert "The test pictures cannot be shown: no data set 'pets'" in text
    config = (path / "config.toml").read_text().replace('"pets"', '"digits"')
    (path / "config.toml").write_text(config)
    call(path)
    text = read((path / "report.html").read_text(encoding="utf-8")).text
    assert "they are no longer those of this run" in text


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run folder"):
        call(tmp_path)
    path = write_run(tmp_path / "run")
    (path / "report.html").write_text("mine")
    with pytest.raises(UserError, match="is no report"):
        call(path)
