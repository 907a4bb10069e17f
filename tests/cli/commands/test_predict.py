"""`fullmatch predict` as it is typed."""

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from fullmatch.api.finishing import finish_run
from fullmatch.cli.commands.predict import predict
from fullmatch.errors import UserError
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.inference.prediction import Item, Prediction, Predictor
from fullmatch.storage.run_folder import RunFolder
from tests.frozen_runs import frozen_config, tiny_body
from tests.own_pictures import clean_folder, outlier, picture, save
from tests.served import digit_files, digits_run
from tests.small_runs import finish

__all__ = ["tiny_body"]

app = App(result_action="return_value")
app.command(predict)


def run_predict(*arguments: object) -> None:
    app(["predict", *map(str, arguments)], exit_on_error=False, print_error=False)


def test_csv_file_among_the_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = digit_files(tmp_path, 5)
    (tmp_path / "broken.jpg").write_text("not a picture")
    out = tmp_path / "labels.csv"
    run_predict(digits_run(), tmp_path, "--csv", out)
    rows = list(csv.DictReader(out.open()))
    assert {row["path"] for row in rows} == {*files, str(tmp_path / "broken.jpg")}
    output = capsys.readouterr()
    assert output.out == ""
    assert "6 pictures" in output.err
    assert "1 unreadable" in output.err
    assert "not calibrated" in output.err
    before = out.read_text()
    with pytest.raises(UserError, match="exists already"):
        run_predict(digits_run(), tmp_path, "--csv", out)
    assert out.read_text() == before
    run_predict(digits_run(), next(iter(files)), "--csv", out, "--overwrite")
    assert len(out.read_text().splitlines()) == 2


def test_an_interrupt_leaves_no_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = digit_files(tmp_path / "digits", 2)
    out = tmp_path / "labels.csv"
    run_predict(digits_run(), first, "--csv", out)
    assert "1 picture" in capsys.readouterr().err
    before, predict_batch = out.read_text(), Predictor.predict_batch

    def interrupt(self: Predictor, items: list[Item]) -> Iterator[Prediction]:
        yield from predict_batch(self, items)
        raise KeyboardInterrupt

    monkeypatch.setattr(Predictor, "predict_batch", interrupt)
    for path, more in ((out, ["--overwrite"]), (tmp_path / "new.csv", [])):
        with pytest.raises(SystemExit, match="130"):
            run_predict(digits_run(), first, second, "--csv", path, *more)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits", "labels.csv"]
    assert out.read_text() == before


def test_writes_through_a_link_and_to_a_pipe(tmp_path: Path) -> None:
    (picture,) = digit_files(tmp_path / "digits", 1)
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    run_predict(digits_run(), picture, "--csv", tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").is_file()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    run_predict(digits_run(), picture, "--csv", tmp_path / "pipe", "--overwrite")
    assert os.read(reader, 10_000).startswith(b"path,label")
    assert (tmp_path / "pipe").is_fifo()
    os.close(reader)


def test_only_rows_go_to_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = digit_files(tmp_path, 2)
    run_predict(digits_run(), first, second, "--unsure", "0")
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["path"] for row in rows] == [first, second]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no pictures given"),
        (["gone.png"], "no picture, folder or pattern gone.png"),
        (["empty"], "no files in empty"),
        (["empty/../full", "--csv", "gone/x.csv"], "cannot write gone/x.csv"),
    ],
)
def test_errors_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    digit_files(tmp_path / "full", 1)
    with pytest.raises(UserError, match=message):
        run_predict(digits_run(), *arguments)
    assert not list(tmp_path.glob("**/*.csv"))


@pytest.mark.usefixtures("tiny_body")
@pytest.mark.parametrize("body", ["frozen", "trained"])
def test_flags_without_the_training_folder(
    body: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = clean_folder(tmp_path / "photos", labels=10, unlabeled=20, test=3, size=72)
    if body == "frozen":
        config = frozen_config(photos)
    else:
        settings = ("model.name=wrn-10-1", "training.steps=2", "training.batch=6", "data.size=32")
        config = resolve(data=str(photos), assignments=settings)
    run = finish(start(config, RunFolder.planned("run", tmp_path / "run")))
    finish_run(run.folder, run.source)
    capsys.readouterr()
    new = tmp_path / "new"
    for seed in range(3):
        save(outlier(seed).resize((72, 72)), new / f"odd{seed}.png")
        save(picture("grass", 60_000 + seed, (80, 72)), new / f"usual{seed}.png")
    photos.rename(tmp_path / "moved")
    predict(run.folder.path, str(new))
    printed = capsys.readouterr()
    flags = {row["path"]: row["flag"] for row in csv.DictReader(printed.out.splitlines())}
    odd = [flag for path, flag in flags.items() if "odd" in path]
    assert odd == ["unlike"] * 3
    assert "unlike" not in [flag for path, flag in flags.items() if "usual" in path]
    assert "not flagged" not in printed.err
