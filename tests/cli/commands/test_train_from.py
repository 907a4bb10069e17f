"""`fullmatch train --from`: a run that starts from the weights of another."""

import html
import json
from pathlib import Path

import pytest
import torch
from cyclopts import App
from safetensors.torch import load_file

from fullmatch.cli.commands.train import train
from fullmatch.errors import UserError
from tests.own_pictures import clean_folder

app = App(result_action="return_value")
app.command(train)
QUICK = ["--set", "training.batch=4", "--set", "training.ratio=1"]


def run_train(*arguments: object) -> None:
    app(["train", *map(str, arguments), *QUICK], exit_on_error=False, print_error=False)


def test_starts_from_the_weights_of_the_other_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = clean_folder(tmp_path / "pets", labels=2, unlabeled=3, size=16)
    first, second = tmp_path / "first", tmp_path / "second"
    run_train(home, "--out", first, "--steps", 2, "--set", "model.name=wrn-10-1")
    assert "did not start from" not in capsys.readouterr().out
    # With learning rate 0 the weights stay as they are.
    run_train(home, "--out", second, "--from", first, "--steps", 1, "--set", "optimizer.rate=0")
    result = json.loads((second / "result.json").read_text(encoding="utf-8"))
    assert f"starts from {first}" in result["notes"]
    # The other run was trained on the labels that its estimate holds out.
    assert result["estimate"]["without_start"]
    note = "These models did not start from the earlier run's weights"
    assert note in capsys.readouterr().out
    assert note in html.unescape((second / "report.html").read_text("utf-8"))
    assert f'start = "{first}"' in (second / "config.toml").read_text(encoding="utf-8")
    old, new = (load_file(run / "model.safetensors") for run in (first, second))
    assert all(torch.equal(old[name], new[name]) for name in old if name.endswith("weight"))


def test_plans_for_the_network_of_the_other_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = clean_folder(tmp_path / "pets", labels=2, unlabeled=3, size=32)
    first = tmp_path / "first"
    run_train(home, "--out", first, "--steps", 1, "--model", "wrn-10-1")
    capsys.readouterr()
    run_train(home, "--out", tmp_path / "second", "--from", first, "--steps", 1)
    assert "network wrn-10-1 on pictures" in capsys.readouterr().out


def test_a_run_is_never_written_among_the_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = clean_folder(tmp_path / "pets", labels=2, unlabeled=3, size=16) / "labeled"
    before = sorted(home.rglob("*"))
    monkeypatch.chdir(home)
    for arguments in ([], ["--out", home / "mine"]):
        with pytest.raises(UserError, match=r"among your pictures.*--out"):
            run_train(".", "--steps", 1, *arguments)
    assert sorted(home.rglob("*")) == before
