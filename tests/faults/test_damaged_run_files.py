"""A damaged file of a run ends each command in one line that names it and says what to do."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from fullmatch.cli import main
from fullmatch.storage.run_folder import RunFolder
from tests.trained_runs import train_pets


def set_result(folder: RunFolder, **fields: object) -> None:
    folder.result.write_text(json.dumps(json.loads(folder.result.read_text()) | fields))


def set_metrics(folder: RunFolder, value: object) -> None:
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    lines[0]["loss"] = value
    folder.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))


def poison(folder: RunFolder, value: float) -> None:
    tensors = load_file(folder.model)
    with_metadata = folder.model.read_bytes()
    weights = next(each for each in tensors.values() if each.is_floating_point()).view(-1)
    old = weights[:4].numpy().tobytes()
    weights[:4] = value
    assert with_metadata.count(old) >= 1
    folder.model.write_bytes(with_metadata.replace(old, weights[:4].numpy().tobytes(), 1))


COMMANDS = {
    "report": lambda run: ["report", run],
    "card": lambda run: ["card", run],
    "suggest": lambda run: ["suggest", run, "-n", "1"],
    "predict": lambda run: ["predict", run, str(Path(run).parent)],
    "evaluate": lambda run: ["evaluate", run],
    "export": lambda run: ["export", run, f"{run}.onnx"],
}
READERS = ("report", "card", "suggest", "predict")
MODEL_READERS = ("predict", "evaluate", "suggest", "export", "card")
Damage = Callable[[RunFolder], object]
CASES: list[tuple[str, str, Damage, tuple[str, ...]]] = [
    ("result.json", "half", lambda f: os.truncate(f.result, 50), READERS),
    ("result.json", "types", lambda f: set_result(f, classes=3), READERS),
    ("metrics.jsonl", "text", lambda f: set_metrics(f, "high"), ("report",)),
    ("metrics.jsonl", "list", lambda f: set_metrics(f, [1]), ("report",)),
    ("predictions.safetensors", "half", lambda f: os.truncate(f.predictions, 80), ("report",)),
    ("learned.safetensors", "half", lambda f: os.truncate(f.learned, 20), ("evaluate",)),
    (
        "learned.safetensors",
        "other tensors",
        lambda f: save_file({"x": torch.zeros(2)}, f.learned),
        ("evaluate",),
    ),
    ("model.safetensors", "NaN", lambda f: poison(f, float("nan")), MODEL_READERS),
    ("model.safetensors", "infinity", lambda f: poison(f, float("inf")), ("predict",)),
]


@pytest.mark.parametrize(
    ("file", "damage", "command"),
    [
        pytest.param(file, damage, command, id=f"{file} {what}: {command}")
        for file, what, damage, commands in CASES
        for command in commands
    ],
)
def test_one_line_names_the_file(
    file: str,
    damage: Damage,
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(train_pets(), folder.path)
    folder.manifest.unlink()  # the hash would tell, and this is about what the file holds
    damage(folder)
    with pytest.raises(SystemExit, match="2"):
        main(COMMANDS[command](str(folder.path)))
    (line,) = [
        line for line in capsys.readouterr().err.splitlines() if line.startswith("fullmatch: ")
    ]
    assert file in line
    assert "; " in line  # what to do follows
