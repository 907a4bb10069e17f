"""`fullmatch label` as it is typed, and stopped."""

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from cyclopts import App, CycloptsError

from fullmatch import data
from fullmatch.cli.commands.label import label
from fullmatch.errors import UserError
from tests.own_pictures import clean_folder, picture, save
from tests.served import pets_run, shared_folder

app = App(result_action="return_value")
app.command(label)
START = "import sys; from tests.cli.commands.test_label import run_label; run_label(*sys.argv[1:])"
ROOT = Path(__file__).parents[3]


def run_label(*arguments: object) -> None:
    app(["label", *map(str, arguments)], exit_on_error=False, print_error=False)


def test_serves_until_interrupted(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "my pets", labels=2, unlabeled=3, size=16)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(home), "-n", "4"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        pattern = r"Label 4 pictures at (http://127\.0\.0\.1:\d+/\S+/)\n"
        assert read_line(process).startswith("- The order is by color: features need")
        address = re.fullmatch(pattern, read_line(process))
        assert address is not None
        assert read_line(process) == f"Labels go to {tmp_path / 'labels.csv'}. Stop with Ctrl-C.\n"
        request = urllib.request.Request(
            f"{address[1]}label",
            b'{"number": 0, "label": "grass"}',
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.status == 200
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    table = tmp_path / "labels.csv"
    assert process.returncode == 0
    assert text.strip() == (
        f"1 new label. 7 of 15 pictures are labeled in {table}. Next: fullmatch train {table}"
    )
    assert (data.load(str(table)).labels >= 0).sum() == 7
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_with_a_model_and_its_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fullmatch.labeling.server import LabelServer

    servers: list[LabelServer] = []

    def interrupt(self: LabelServer, poll_interval: float = 0.5) -> None:
        servers.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(LabelServer, "serve_forever", interrupt)
    run_label(shared_folder() / "pets", "--run", pets_run(), "-n", 3, "--out", tmp_path / "a.csv")
    (server,) = servers
    guesses = [picture.guess for picture in server.queue.pictures]
    assert len(guesses) == 3
    assert set(guesses) <= set(server.queue.table.classes)
    assert "0 new labels. 6 of 12 pictures are labeled" in capsys.readouterr().out
    assert server.socket.fileno() == -1
    assert not (tmp_path / "a.csv").exists()
    save(picture("grass", 1), tmp_path / "heap" / "a.png")
    run_label(tmp_path / "heap")
    assert "Label pictures of at least 2 classes, then train." in capsys.readouterr().out


def test_imports_labels_from_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1, size=16)
    (tmp_path / "filled.csv").write_text("path,label\npets/unlabeled/b0.jpg,brick\n")
    run_label(home, "--take", tmp_path / "filled.csv")
    assert "1 label taken" in capsys.readouterr().out
    assert (data.load(str(tmp_path / "labels.csv")).labels >= 0).sum() == 4


def test_errors(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=0)
    with pytest.raises(UserError, match="labeled already"):
        run_label(home)
    (home / "unlabeled").mkdir()
    (home / "unlabeled" / "a.png").write_text("not a picture")
    with pytest.raises(UserError, match="can be read"):
        run_label(home)
    with pytest.raises(CycloptsError, match="0 is too small, expected 1 or more"):
        run_label(home, "-n", "0")
    with pytest.raises(UserError, match="no such folder"):
        run_label(tmp_path / "gone")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pets"]
