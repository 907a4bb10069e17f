"""The commands in docs/labeling.md work as described."""

import csv
import json
import re
import shlex
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from cyclopts import App
from PIL import Image

from fullmatch.cli.commands.label import label
from fullmatch.cli.commands.suggest import suggest
from fullmatch.cli.commands.train import train
from fullmatch.inference.suggestion import SAMPLE
from fullmatch.labeling.server import LabelServer
from tests.own_pictures import COLORS, picture, save
from tests.patterns import find_blocks

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "labeling.md").read_text(encoding="utf-8")
QUICK = ("--steps", "2", "--model", "wrn-10-1", "--set", "training.batch=4")

app = App(result_action="return_value")
for command in (label, suggest, train):
    app.command(command)


def commands() -> Iterator[list[str]]:
    for block in find_blocks("sh", TEXT):
        for line in block.splitlines():
            name, *words = shlex.split(line)
            assert name == "fullmatch"
            yield words


def post(server: LabelServer, path: str, **body: object) -> None:
    content, kind = json.dumps(body).encode(), {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(server.address + path, content, kind)).close()


def label_like_a_user(server: LabelServer, poll_interval: float = 0.5) -> None:
    """Add the classes, label four pictures by their file names, and press Ctrl-C."""
    thread = Thread(target=LabelServer.service, args=(server,), daemon=True)  # type: ignore[attr-defined]
    thread.start()
    for name in COLORS:
        if name not in server.queue.table.classes:
            post(server, "class", name=name)
    for number in range(4):
        stem = Path(server.queue.pictures[number].name).stem
        post(server, "label", number=number, label=stem.rstrip("0123456789"))
    server.shutdown()
    thread.join()
    raise KeyboardInterrupt


def test_all_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, kind in enumerate(COLORS):
        for i in range(10):
            save(picture(kind, 100 * number + i), tmp_path / "pictures" / f"{kind}{i}.png")
    monkeypatch.setattr(LabelServer, "service", LabelServer.serve_forever, raising=False)
    monkeypatch.setattr(LabelServer, "serve_forever", label_like_a_user)
    suggestions = tmp_path / "runs" / "labels-fullmatch-001" / "suggestions" / "suggestions.csv"
    labeled_counts = []
    for words in commands():
        if words[0] == "train":
            words += QUICK
        if "--take" in words:
            suggestions.write_text(
                re.sub(r"/([a-z]+)(\d+\.png),,", r"/\1\2,\1,", suggestions.read_text())
            )
        app(words, exit_on_error=False, print_error=False)
        with (tmp_path / "labels.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 30
        labeled_counts.append(sum(bool(row["label"]) for row in rows))
        labeled = (row for row in rows if row["label"])
        assert all(Path(row["path"]).name.startswith(row["label"]) for row in labeled)
    # Four labels twice, then twenty suggestions that were filled in.
    assert labeled_counts == [4, 4, 8, 8, 8, 28, 28]
    assert (tmp_path / "suggestions" / "suggestions.csv").is_file()
    text = capsys.readouterr().out
    assert "Next: fullmatch train" in text
    assert "20 labels taken" in text
    assert (tmp_path / "runs" / "labels-fullmatch-002").is_dir()


def test_numbers_and_keys_match_the_code() -> None:
    assert f"At most\n{SAMPLE:,} pictures" in TEXT
    for key in ("s", "u", "n"):
        assert f"| `{key}` |" in TEXT


def test_the_screenshot_exists_and_is_small() -> None:
    path = DOCS / "images" / "labeling.png"
    assert f"(images/{path.name})" in TEXT
    assert path.stat().st_size < 200_000
    with Image.open(path) as image:
        assert image.size == (900, 840)
