"""`fullmatch report` on the command line."""

import shutil
from pathlib import Path

import pytest
from cyclopts import App

from fullmatch.api.finishing import report_after_training
from fullmatch.cli.commands.report import report
from fullmatch.data import load
from fullmatch.errors import UserError
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.runs import read_run
from tests.html_page import ParsedPage, parse_page
from tests.small_pictures import write_pets
from tests.small_runs import TINY, finish
from tests.trained_runs import train_digits, train_pets
from tests.written_runs import write_run

app = App(result_action="return_value")
app.command(report)


def call(*words: object) -> None:
    app(["report", *map(str, words)], exit_on_error=False)


def read_page(path: Path) -> ParsedPage:
    return parse_page(path.read_text(encoding="utf-8"))


def test_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shutil.copytree(train_digits(), tmp_path / "run")
    call(run)
    page = read_page(run / "report.html")
    assert len(page.named("img")) > 12  # the real digits
    assert str(run / "report.html") in capsys.readouterr().out


def test_own_pictures(tmp_path: Path) -> None:
    call(train_pets(), "--out", tmp_path / "pets.html")
    page = read_page(tmp_path / "pets.html")
    assert "dög 2" in page.text
    assert len(page.named("img")) >= 6
    titles = {span["title"] for span in page.named("span") if "title" in span}
    assert titles == {f"test/{name}/bild ä {n}.png" for name in ("cat", "dög 2") for n in range(3)}
    assert "bild ä 1.png" in page.text
    assert not (train_pets() / "report.html").exists()


def test_own_pictures_without_a_test(tmp_path: Path) -> None:
    pets = write_pets(tmp_path)
    shutil.rmtree(pets / "test")
    config = resolve(data=str(pets), assignments=(*TINY, "model.name=wrn-10-1"))
    run = finish(start(config, RunFolder.planned("pets", tmp_path / "run")))
    report_path = run.folder.path / "report.html"
    call(run.folder.path)
    text = report_path.read_text(encoding="utf-8")
    page = parse_page(text)
    titles = sorted(span["title"] or "" for span in page.named("span") if "title" in span)
    assert titles == [f"unlabeled/bild ä {n}.png" for n in range(6)]
    assert "6 unlabeled pictures" in page.text
    report_after_training(run.folder.path, run.dataset)  # with pictures in memory: the same page
    assert report_path.read_text(encoding="utf-8") == text
    shutil.rmtree(pets)
    call(run.folder.path)
    reason = f"The unlabeled pictures cannot be shown: {pets}, which {run.folder.path} was"
    assert reason in read_page(report_path).text


def test_at_the_end_of_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shutil.copytree(train_pets(), tmp_path / "a run")
    source = load(read_run(run).settings.data)
    report_after_training(run, source)
    assert capsys.readouterr().out == f"Report: {run / 'report.html'}\n"
    (run / "report.html").unlink()
    (run / "report.html").mkdir()  # nothing can be written there
    report_after_training(run, source)
    output = capsys.readouterr().out
    assert output.startswith("No report was written (")
    assert output.count("\n") == 1
    assert f"try: fullmatch report '{run}'" in output


def test_several_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call(train_digits(), train_pets())
    assert "not measured on the same test pictures" in (tmp_path / "report.html").read_text()


def test_missing_or_changed_pictures(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run")
    call(path)
    text = read_page(path / "report.html").text
    assert f"The test pictures cannot be shown: pets, which {path} was trained on, is gone;" in text
    config = (path / "config.toml").read_text().replace('"pets"', '"digits"')
    (path / "config.toml").write_text(config)
    call(path)
    assert "they have changed since this run" in read_page(path / "report.html").text


def test_replaced_test_pictures_are_not_shown(tmp_path: Path) -> None:
    """Names and labels are as before, but the predictions are for other pictures."""
    run, pets = shutil.copytree(train_pets(), tmp_path / "run"), tmp_path / "pets"
    original = read_run(run).settings.data
    shutil.copytree(original, pets)
    config = (run / "config.toml").read_text(encoding="utf-8").replace(original, str(pets))
    (run / "config.toml").write_text(config, encoding="utf-8")
    call(run)
    assert "have changed" not in (run / "report.html").read_text(encoding="utf-8")
    first, second = (pets / "test" / "cat" / f"bild ä {number}.png" for number in (0, 1))
    shutil.copy(first, second)
    call(run)
    text = read_page(run / "report.html").text
    assert "The test pictures cannot be shown: they have changed since this run" in text


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        call(tmp_path)
    path = write_run(tmp_path / "run")
    (path / "report.html").write_text("mine")
    with pytest.raises(UserError, match="is not a fullmatch report"):
        call(path)
