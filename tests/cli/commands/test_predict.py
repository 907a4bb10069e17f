"""`fullmatch predict` as it is typed."""

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from fullmatch.cli.commands.predict import predict
from fullmatch.errors import UserError
from fullmatch.inference.prediction import Prediction, Predictor
from tests.served import digit_files, digits_run

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

    def interrupt(self: Predictor, files: list[str]) -> Iterator[Prediction]:
        yield from predict_batch(self, files)
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
