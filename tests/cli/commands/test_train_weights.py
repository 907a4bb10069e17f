"""`fullmatch train --weights`: a run that starts from a weights file."""

import json
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import load_file

from fullmatch.cli import main
from tests.own_pictures import clean_folder

QUICK = ["--steps", "1", "--set", "training.batch=4", "--set", "training.ratio=1"]


def test_starts_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    clean_folder(tmp_path / "pets", labels=2, unlabeled=3, size=32)
    published = timm.create_model("test_resnet")
    torch.save(published.state_dict(), "weights.pth")
    named = ["--model", "timm:test_resnet", "--weights", "weights.pth"]
    # With learning rate 0 the weights stay as they are.
    main(["train", "pets", "--out", "run", *named, *QUICK, "--set", "optimizer.rate=0"])
    result = json.loads(Path("run/result.json").read_text(encoding="utf-8"))
    path = tmp_path / "weights.pth"
    assert any(note.startswith(f"starts from {path}: ") for note in result["notes"])
    assert f'weights = "{path}"' in Path("run/config.toml").read_text(encoding="utf-8")
    trained = load_file("run/model.safetensors")
    for name, tensor in published.named_parameters():
        if not name.startswith("fc."):
            assert torch.equal(trained[f"network.body.{name}"], tensor), name
    assert not result["estimate"]["without_start"]  # its models start from the file too


def test_errors_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    clean_folder(tmp_path / "pets", labels=2, unlabeled=3, size=16)
    Path("bad.pth").write_bytes(b"not weights")
    for arguments, message in (
        (["--weights", "bad.pth"], "--weights needs --model"),
        (["--weights", "bad.pth", "--model", "wrn-10-1"], "bad.pth cannot be read"),
        (["--weights", "gone.pth", "--model", "wrn-10-1"], "gone.pth is not a file of weights"),
        (["--weights", "bad.pth", "--model", "timm:resnet81"], "timm has no model 'resnet81'"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["train", "pets", *arguments, *QUICK])
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
    assert not Path("runs").exists()
