"""`fullmatch train --from`: a run that starts from an earlier one's weights."""

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


def typed(*words: object) -> None:
    app(["train", *map(str, words), *QUICK], exit_on_error=False, print_error=False)


def test_it_starts_where_the_other_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fullmatch.experiment.cross_validation.LEAST", 1)
    home = clean_folder(tmp_path / "pets", labels=2, unlabeled=3, size=16)
    first, second = tmp_path / "first", tmp_path / "second"
    typed(home, "--out", first, "--steps", 2, "--set", "model.name=wrn-10-1")
    assert "trained anew" not in capsys.readouterr().out
    # A rate of nothing leaves the weights as they were at the start.
    typed(home, "--out", second, "--from", first, "--steps", 1, "--set", "optimizer.rate=0")
    result = json.loads((second / "result.json").read_text(encoding="utf-8"))
    assert f"starts from {first}" in result["notes"]
    # Unlike the run itself, its estimate must not know the labels that it holds out.
    assert result["honest"]["anew"]
    assert "The models asked were trained anew" in capsys.readouterr().out
    assert "The models asked were trained anew" in (second / "report.html").read_text("utf-8")
    assert f'start = "{first}"' in (second / "config.toml").read_text(encoding="utf-8")
    old, new = (load_file(run / "model.safetensors") for run in (first, second))
    assert all(torch.equal(old[name], new[name]) for name in old if name.endswith("weight"))


def test_it_plans_for_the_network_it_starts_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fullmatch.experiment.cross_validation.LEAST", 1)
    home = clean_folder(tmp_path / "pets", labels=2, unlabeled=3, size=32)
    first = tmp_path / "first"
    typed(home, "--out", first, "--steps", 1, "--model", "wrn-10-1")
    capsys.readouterr()
    typed(home, "--out", tmp_path / "second", "--from", first, "--steps", 1)
    assert "network wrn-10-1 on pictures" in capsys.readouterr().out


def test_a_run_never_lies_among_the_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = clean_folder(tmp_path / "pets", labels=2, unlabeled=3, size=16) / "labeled"
    before = sorted(home.rglob("*"))
    monkeypatch.chdir(home)
    for words in ([], ["--out", home / "mine"]):
        with pytest.raises(UserError, match=r"among your pictures.*--out"):
            typed(".", "--steps", 1, *words)
    assert sorted(home.rglob("*")) == before
