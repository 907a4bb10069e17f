"""The command line as a user types it: train, resume, evaluate and list."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fullmatch
from fullmatch.cli import main
from fullmatch.cli.app import app
from tests.small_pictures import write_pets

TINY = ("--set", "training.batch=4", "--set", "training.ratio=2", "--set", "model.name=wrn-10-1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run every test in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_train_resume_evaluate(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "--labels", "20", "--steps", "4", "--baseline", *TINY, "digits"])
    run = here / "runs" / "digits-fullmatch-001"
    output = capsys.readouterr().out
    assert "The same network on the labels only:" in output
    assert "The unlabeled images" in output
    assert json.loads((run / "result.json").read_text())["baseline"]["images"] == 500
    before = (run / "result.json").read_bytes()
    main(["resume", str(run)])
    assert "is finished already" in capsys.readouterr().out
    assert (run / "result.json").read_bytes() == before
    main(["evaluate", str(run)])
    assert "digits, 500 test images" in capsys.readouterr().out
    main(["train", "digits", "--labels", "20", "--steps", "4", *TINY])
    assert (run.parent / "digits-fullmatch-002").is_dir()
    assert (run / "result.json").read_bytes() == before


def test_resume_trains_what_is_missing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "digits", "--labels", "20", "--steps", "2", "--baseline", "--out", "run", *TINY])
    inner = here / "run" / "baseline" / "result.json"
    inner.write_bytes(inner.read_bytes()[:50])
    main(["resume", "run"])
    output = capsys.readouterr().out
    assert f"{inner.relative_to(here)} is damaged (not JSON): writing it again" in output
    assert "finished already" not in output
    assert "on the labels only:" in output
    assert json.loads(inner.read_text())["algorithm"]["name"] == "supervised"


def test_train_from_the_config_of_another_run(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["train", "digits", "--steps", "3", "--seed", "4", "--out", "one", *TINY])
    main(["train", "--config", "one/config.toml", "--out", "two"])
    for name in ("config.toml", "model.safetensors", "split.json"):
        assert (here / "one" / name).read_bytes() == (here / "two" / name).read_bytes()
    main(["train", "--config", "one/config.toml", "--algorithm", "vat", "--out", "three"])
    assert '[algorithm]\nname = "vat"' in (here / "three" / "config.toml").read_text()


def test_own_pictures(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unreadable unlabeled picture is left out, and a small data set shrinks the batches."""
    (write_pets(here) / "unlabeled" / "broken.png").write_bytes(b"nothing")
    main(["train", "pets", "--steps", "2", "--set", "model.name=wrn-10-1"])
    assert "1 unreadable unlabeled picture left out" in capsys.readouterr().out
    run = here / "runs" / "pets-fullmatch-001"
    result = json.loads((run / "result.json").read_text())
    assert result["classes"] == ["cat", "dög 2"]
    assert result["labels"] == 6
    assert result["teacher"]["best_chosen_on_test"] is None
    main(["evaluate", str(run)])
    assert "class dög 2" in capsys.readouterr().out


def test_cifar10_from_arrays(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    (here / "data").mkdir()
    np.savez(
        here / "data" / "cifar10.npz",
        train_x=rng.integers(0, 255, (60, 32, 32, 3), np.uint8),
        train_y=np.arange(60) % 10,
        test_x=rng.integers(0, 255, (20, 32, 32, 3), np.uint8),
        test_y=np.arange(20) % 10,
    )
    main(["train", "--data", "cifar10", "--labels", "40", "--steps", "2", *TINY])
    result = json.loads(next(here.glob("runs/*/result.json")).read_text())
    assert (result["data"], result["labels"], result["unlabeled"]) == ("cifar10", 40, 60)
    assert result["steps"] == 2
    assert result["classes"][0] == "airplane"


def test_interrupt_before_training_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fullmatch.api.training.resolve", interrupt)
    with pytest.raises(SystemExit) as end:
        main(["train"])
    assert end.value.code == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", [["list", "algorithms"], ["list", "datasets"], ["--help"]])
def test_a_closed_pipe(command: list[str]) -> None:
    """As in `fullmatch list algorithms | head -1`: no error, and the usual exit code."""
    with subprocess.Popen(
        [sys.executable, "-m", "fullmatch", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_as_a_module(here: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fullmatch", "resume", "gone"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("fullmatch: gone is not a run folder")


def test_help_shows_each_default_once(capsys: pytest.CaptureFixture[str]) -> None:
    names = [[name] for name in app if not name.startswith("-")]
    names += [["reproduce", name] for name in app["reproduce"] if not name.startswith("-")]
    assert ["label"] in names
    assert ["reproduce", "table1"] in names
    for command in names:
        main([*command, "--help"])
        text = " ".join(re.sub("[│╭╮╰╯─]", " ", capsys.readouterr().out).split())
        assert not re.search(r"\[default: [^]]*\] \[default: ", text), command


@pytest.mark.parametrize("size", ["", "1"])
def test_one_process_by_default(
    size: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", size)
    main(["--version"])
    assert capsys.readouterr().out.strip() == fullmatch.__version__


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--version"])
    assert capsys.readouterr().out.strip() == fullmatch.__version__
    for command in ([], ["train"], ["resume"], ["evaluate"], ["list"]):
        main([*command, "--help"])
        assert "Usage: fullmatch" in capsys.readouterr().out
    for what in ("algorithms", "datasets", "models"):
        main(["list", what])
        assert "name" in capsys.readouterr().out
