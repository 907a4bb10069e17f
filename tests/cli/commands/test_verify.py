"""`fullmatch verify`, and what other commands say about changed files."""

import json
import os
import shutil
from pathlib import Path

import pytest

from fullmatch.cli.app import main
from fullmatch.storage.run_folder import RunFolder
from tests.trained_runs import train_pets


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    shutil.copytree(train_pets(), folder.path)
    return folder


def test_a_whole_run(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    main(["verify", str(folder.path)])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    states = {row[0]: row[1] for row in rows}
    for name in ("model.safetensors", "predictions.safetensors", "result.json"):
        assert states[name] == "whole"
    assert states["checkpoints/step-000000008"] == "whole"
    assert states["config.toml"] == "unchecked"


def test_a_changed_file(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    table = json.loads(folder.result.read_text())
    folder.result.write_text(json.dumps(table | {"seed": 7}))
    with pytest.raises(SystemExit, match="2"):
        main(["verify", str(folder.path)])
    output = capsys.readouterr()
    assert "changed after training" in output.out
    assert "1 file of " in output.err
    assert f"written again with: fullmatch resume {folder.path}" in output.err
    main(["card", str(folder.path)])
    assert f"{folder.result} is not as the run wrote it; write it again" in capsys.readouterr().err


def test_damaged_and_missing_files(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.predictions.unlink()
    os.truncate(folder.learned, 20)
    os.truncate(folder.checkpoints / "step-000000008" / "state.safetensors", 20)
    with pytest.raises(SystemExit, match="2"):
        main(["verify", str(folder.path)])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    states = {row[0]: row[1] for row in rows}
    assert states["predictions.safetensors"] == "missing"
    assert states["learned.safetensors"] == "damaged"
    assert states["checkpoints/step-000000008"] == "damaged"


def test_a_run_without_hashes(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.manifest.unlink()
    main(["verify", str(folder.path)])
    assert "the run kept no hash of it" in capsys.readouterr().out
