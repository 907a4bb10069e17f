"""The page on things of one's own: its file and its commands run as they stand."""

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import torch

from fullmatch.cli import main
from fullmatch.storage.run_folder import RunFolder

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
ONE_FILE = PAGE.split("## All of it in one file")[1].split("\n## ")[0]


def find_commands(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("fullmatch ")]


ALONE = [command for command in find_commands(PAGE) if "own_lab" not in command]


@pytest.mark.parametrize("command", [each for each in ALONE if "train" in each])
def test_commands(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    main(shlex.split(command)[1:])
    (run,) = (tmp_path / "runs").iterdir()
    assert RunFolder(run).read_result().steps == 20


def test_a_method_a_network_a_view_and_a_data_set_from_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (source,) = re.findall(r"```python\n(.*?)```", ONE_FILE, flags=re.DOTALL)
    (tmp_path / "own_lab.py").write_text(source, encoding="utf-8")
    train, *others = find_commands(ONE_FILE)
    run_command(train, monkeypatch)
    mine = RunFolder(tmp_path / "mine")
    result = mine.read_result()
    assert (result.steps, result.data) == (20, "own_lab:stripes")
    # The uninterrupted run, and one that lost everything after step 10: no number differs.
    run_command(f"{train[:-4]}again --set training.checkpoint_every=10", monkeypatch)
    again = RunFolder(tmp_path / "again")
    again.result.unlink()
    for newer in set(again.checkpoints.iterdir()) - {min(again.checkpoints.iterdir())}:
        shutil.rmtree(newer)
    torch.manual_seed(7)
    run_command("fullmatch resume again", monkeypatch)
    assert again.model.read_bytes() == mine.model.read_bytes()
    capsys.readouterr()
    output = {}
    for command in others:
        run_command(command, monkeypatch)
        output[command] = capsys.readouterr().out
    assert all(word in output["fullmatch evaluate mine"] for word in ("40", "rising", "falling"))
    assert (mine.path / "report.html").exists()
    assert "CautiousMatch" in (tmp_path / "figures" / "accuracy.svg").read_text(encoding="utf-8")
    table = next((tmp_path / "table").glob("*.md")).read_text(encoding="utf-8")
    assert "CautiousMatch" in table
    assert "own_lab:stripes" in table


def run_command(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new process would, which has not imported the module yet."""
    monkeypatch.delitem(sys.modules, "own_lab", raising=False)
    main(shlex.split(command)[1:])
