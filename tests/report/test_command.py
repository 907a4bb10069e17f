"""`fullmatch report` as a user calls it."""

import shutil
from pathlib import Path

import pytest
from cyclopts import App

from fullmatch.cli.commands.report import report, report_beside
from fullmatch.data import load
from fullmatch.errors import UserError
from fullmatch.experiment.run import start
from fullmatch.experiment.settings import resolve
from fullmatch.storage.run_folder import RunFolder
from fullmatch.storage.runs import read_run
from tests.report.reading import read
from tests.report.written import write_run
from tests.small_pictures import write_pets
from tests.small_runs import TINY, finish

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
    titles = {span["title"] for span in found.named("span") if "title" in span}
    assert titles == {f"test/{name}/bild ä {n}.png" for name in ("cat", "dög 2") for n in range(3)}
    assert "bild ä 1.png" in found.text
    assert not (pets_run / "report.html").exists()


def test_own_pictures_without_a_test(tmp_path: Path) -> None:
    pets = write_pets(tmp_path)
    shutil.rmtree(pets / "test")
    config = resolve(data=str(pets), assignments=(*TINY, "model.name=wrn-10-1"))
    run = finish(start(config, RunFolder.planned("pets", tmp_path / "run")))
    call(run.folder.path)
    text = (run.folder.path / "report.html").read_text(encoding="utf-8")
    found = read(text)
    titles = sorted(span["title"] or "" for span in found.named("span") if "title" in span)
    assert titles == [f"unlabeled/bild ä {n}.png" for n in range(6)]
    assert "6 unlabeled pictures" in found.text
    report_beside(run.folder.path, run.dataset)  # with the pictures at hand: the same page
    assert (run.folder.path / "report.html").read_text(encoding="utf-8") == text
    shutil.rmtree(pets)
    call(run.folder.path)
    found = read((run.folder.path / "report.html").read_text(encoding="utf-8"))
    assert (
        f"The unlabeled pictures cannot be shown: {pets}, which {run.folder.path} was" in found.text
    )


def test_at_the_end_of_a_training(
    pets_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "a run"
    shutil.copytree(pets_run, run)
    source = load(read_run(run).config["data"]["name"])
    report_beside(run, source)
    assert capsys.readouterr().out == f"See how it went: {run / 'report.html'}\n"
    (run / "report.html").unlink()
    (run / "report.html").mkdir()  # nothing can be written there
    report_beside(run, source)
    said = capsys.readouterr().out
    assert said.startswith("No page about this run (") and said.count("\n") == 1
    assert f"try: fullmatch report '{run}'" in said


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
    assert f"The test pictures cannot be shown: pets, which {path} was trained on, is gone;" in text
    config = (path / "config.toml").read_text().replace('"pets"', '"digits"')
    (path / "config.toml").write_text(config)
    call(path)
    text = read((path / "report.html").read_text(encoding="utf-8")).text
    assert "they are no longer those of this run" in text


def test_replaced_test_pictures_are_not_shown(pets_run: Path, tmp_path: Path) -> None:
    """Under the predictions of others; names and labels are as before."""
    run, pets = tmp_path / "run", tmp_path / "pets"
    shutil.copytree(pets_run, run)
    shutil.copytree(read_run(run).config["data"]["name"], pets)
    (run / "config.toml").write_text(
        (run / "config.toml")
        .read_text(encoding="utf-8")
        .replace(read_run(run).config["data"]["name"], str(pets)),
        encoding="utf-8",
    )
    call(run)
    assert "no longer those" not in (run / "report.html").read_text(encoding="utf-8")
    first, second = (pets / "test" / "cat" / f"bild ä {number}.png" for number in (0, 1))
    shutil.copy(first, second)
    call(run)
    text = read((run / "report.html").read_text(encoding="utf-8")).text
    assert "The test pictures cannot be shown: they are no longer those of this run" in text


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run folder"):
        call(tmp_path)
    path = write_run(tmp_path / "run")
    (path / "report.html").write_text("mine")
    with pytest.raises(UserError, match="is no report"):
        call(path)
