"""Settings that research groups change: each works from the command line, and all of them."""

import shutil
from pathlib import Path

import pytest
import torch

from fullmatch.cli import main
from fullmatch.experiment.settings import read_config
from fullmatch.storage.run_folder import RunFolder

DOCS = Path(__file__).parents[2] / "docs"
TRAIN = ["train", "digits", "--labels", "40", "--model", "wrn-10-1", "--set", "training.batch=8"]
SETTINGS = {
    "optimizer.name": "adamw",
    "optimizer.layer_decay": "0.5",
    "optimizer.warmup": "1",
    "optimizer.schedule": "one_cycle",
    "training.accumulate": "2",
    "data.imbalance": "4",
    "data.balance": "false",
    "data.unlabeled": "200",
    "training.ratio": "0.5",
}
TOGETHER = ["optimizer.name", "optimizer.layer_decay", "optimizer.warmup", "training.accumulate"]


def assign(*names: str) -> list[str]:
    return [word for name in names for word in ("--set", f"{name}={SETTINGS[name]}")]


@pytest.mark.parametrize("name", SETTINGS)
def test_each_setting(name: str, tmp_path: Path) -> None:
    main([*TRAIN, "--steps", "2", "--out", str(tmp_path / "run"), *assign(name)])
    folder = RunFolder(tmp_path / "run")
    section, field = name.split(".")
    value = getattr(getattr(read_config(folder), section), field)
    assert str(value).lower().removesuffix(".0") == SETTINGS[name]
    assert folder.read_result().steps == 2
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    assert f"`{name}" in pages


def test_all_in_one_command_resume_exactly(tmp_path: Path) -> None:
    whole, stopped = (RunFolder(tmp_path / name) for name in ("whole", "stopped"))
    command = [*TRAIN, "--steps", "6", *assign(*TOGETHER), "--set", "training.checkpoint_every=3"]
    main([*command, "--out", str(whole.path)])
    shutil.copytree(whole.path, stopped.path)
    stopped.result.unlink()
    shutil.rmtree(max(stopped.checkpoints.iterdir()))
    torch.manual_seed(5)
    main(["resume", str(stopped.path)])
    assert stopped.model.read_bytes() == whole.model.read_bytes()
