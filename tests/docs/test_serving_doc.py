"""The commands in docs/serving.md work as described."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App
from PIL import Image

from fullmatch.cli.commands.card import card
from fullmatch.cli.commands.export import export
from fullmatch.cli.commands.predict import predict
from fullmatch.data.stores import pictures
from fullmatch.inference.novelty import LEAST_IMAGES, MOST_IMAGES
from tests.inference.test_model_page import write_runtime
from tests.patterns import find_blocks
from tests.served import copy_run, digit_files, digits_run

TEXT = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")

app = App(result_action="return_value")
for command in (predict, export, card):
    app.command(command)


def blocks(language: str) -> list[str]:
    return find_blocks(language, TEXT)


def test_all_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    copy_run(digits_run(), tmp_path / "runs" / "pictures")
    digit_files(tmp_path / "new", 5)
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("fullmatch ")]
    assert {words[0] for words in commands} == {"predict", "export", "card"}
    assert [line for line in lines if not line.startswith("fullmatch ")] == [
        "pip install 'fullmatch[export]'",
        "npm pack onnxruntime-web",
        "tar xzf onnxruntime-web-*.tgz",
    ]
    (tmp_path / "package").mkdir()
    write_runtime(tmp_path / "package" / "dist", 10)  # a stand-in for what npm fetches
    for words in commands:
        app(words, exit_on_error=False, print_error=False)
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 6
    assert "# Classifier for digits" in (tmp_path / "MODEL_CARD.md").read_text()
    assert "Drop pictures here" in (tmp_path / "model.html").read_text()
    capsys.readouterr()
    onnx, estimator = blocks("python")
    exec(onnx, {})
    assert capsys.readouterr().out.strip() in tuple("0123456789")
    # The same pixels as `predict`, also for a large JPEG and for a rotated one.
    rotated = Image.Exif()
    rotated[0x0112] = 6
    large = Image.effect_noise((900, 700), 80).convert("RGB")
    for exif in (Image.Exif(), rotated):
        large.save("new/large.jpg", exif=exif)
        space: dict[str, Any] = {}
        exec(onnx.replace("new/000.png", "new/large.jpg"), space)
        expected = pictures.decode("new/large.jpg", (8, 8), 1)
        assert (space["pixels"][0].transpose(2, 0, 1) == expected).all()
    capsys.readouterr()
    exec(estimator, {})
    assert re.match(r"\[\d \d \d\] 0\.\d+", capsys.readouterr().out)


def test_numbers_match_the_code() -> None:
    assert f"up to {MOST_IMAGES:,} training pictures" in TEXT
    assert f"fewer than {LEAST_IMAGES} training" in TEXT
