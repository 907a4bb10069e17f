"""The command in docs/tracking.md works as described."""

import re
from pathlib import Path

import pytest

from fullmatch.cli import main
from fullmatch.tracking.tracker import TRACKERS

TEXT = (Path(__file__).parents[2] / "docs" / "tracking.md").read_text(encoding="utf-8")
SHORT = "--steps 2 --set model.name=wrn-10-1 --set training.batch=4 --set training.ratio=1"


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (command,) = re.findall(r"^fullmatch (.*)$", TEXT, re.MULTILINE)
    main([*command.split(), *SHORT.split()])
    (run,) = Path("runs").iterdir()
    assert list((run / "tensorboard").glob("events.out.tfevents.*"))
    assert list(Path("mlruns").glob("*/*/metrics/train/loss"))


def test_every_tracker_is_described() -> None:
    for name, (_, package) in TRACKERS.items():
        assert f"| `{name}` | `pip install 'fullmatch[{package}]'` |" in TEXT
