"""Every mistake of a user ends in one line and exit code 2, and writes nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w

from fullmatch.cli import main
from fullmatch.cli.app import exit_on_error
from tests.small_pictures import write_pets

TINY = ("--set", "training.batch=4", "--set", "training.ratio=2", "--set", "model.name=wrn-10-1")
RunMistake = Callable[..., str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run every test in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mistake(here: Path, capsys: pytest.CaptureFixture[str]) -> RunMistake:
    """Run a command that must fail, and return its one line."""

    def read_all() -> dict[Path, bytes | None]:
        return {p: p.read_bytes() if p.is_file() else None for p in here.rglob("*")}

    def run(*argv: str) -> str:
        before = read_all()
        with pytest.raises(SystemExit) as end:
            main(list(argv))
        output = capsys.readouterr()
        assert end.value.code == 2
        assert output.err.startswith("fullmatch: ")
        assert output.err.count("\n") == 1
        assert "Traceback" not in output.err
        assert output.out == ""  # no notes before the error
        assert read_all() == before
        return output.err

    return run


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("trian digits", 'Did you mean "train"?'),
        ("train --stepps 5", "Did you mean --steps?"),
        ("train --algorithm fulmatch", "did you mean 'fullmatch'?"),
        ("train --algorithm full-mixmatch", "has no pseudo-labels"),
        ("train cifar11", "did you mean 'cifar10'?"),
        ("train --data digit", "did you mean 'digits'?"),
        ("train --set training.stesp=5", "did you mean 'steps'?"),
        ("train --set trianing.steps=5", "did you mean 'training'?"),
        ("train --set algorithm.treshold=0.5", "did you mean 'threshold'?"),
        ("train --set model.name=wrn-28-22x", "did you mean 'wrn-28-2'?"),
        ("train --set training.execution=grahp", "did you mean 'graph'?"),
        ("train --steps many", "--steps: 'many' is not an integer"),
        ("train --steps 1.5", "--steps: '1.5' is not an integer"),
        ("train --steps 0", "training.steps is 0, expected 1 or more"),
        ("train --seed -1", "seed is -1"),
        ("train --set training.batch=large", "expected an integer"),
        ("train --set training.log_every=0", "expected 1 or more"),
        ("train --set nothing", "expected a.b=value"),
        ("train --labels 9", "9 labels are fewer than the 10 classes of digits"),
        ("train --labels 100000", "ask for fewer labels"),
        ("train --set data.split=nowhere.json", "cannot read the split nowhere.json"),
        ("train --set data.size=16", "leave the size out"),
        ("train --config nowhere.toml", "cannot read the config nowhere.toml"),
        ("train --set training.execution=graph", "needs an NVIDIA GPU"),
        ("train --algorithm semco", "embeddings"),
        ("train nowhere.csv", "no data set 'nowhere.csv'"),
        ("resume nowhere", "nowhere is not a run folder"),
        ("resume", "requires an argument"),
        ("evaluate nowhere", "nowhere is not a run folder"),
        ("list algorithm", 'Did you mean "algorithms"?'),
        ("list", "requires an argument"),
    ],
)
def test_messages(command: str, message: str, mistake: RunMistake) -> None:
    assert message in mistake(*command.split())


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("fixmatch threshold=95", "0 to 1"),
        ("fixmatch threshold=-1", "0 to 1"),
        ("flexmatch threshold=1.5", "0 to 1"),
        ("freematch momentum=1.5", "0 to 1"),
        ("freematch floor=0.9 threshold=0.5", "0.5 or less"),
        ("remixmatch momentum=2", "0 to 1"),
        ("remixmatch temperature=0", "more than 0"),
        ("mixmatch temperature=0", "more than 0"),
        ("mixmatch alpha=0", "more than 0"),
        ("uda temperature=-1", "more than 0"),
        ("uda temperature=0", "more than 0"),
        ("ups dropout=2", "0 to less than 1"),
        ("ups dropout=1", "0 to less than 1"),
        ("ups_offline dropout=1", "0 to less than 1"),
        ("softmatch deviations=0", "more than 0"),
        ("dash gamma=0", "more than 0"),
        ("dash temperature=0", "more than 0"),
        ("comatch temperature=0", "more than 0"),
        ("comatch width=0", "1 or more"),
        ("comatch bank=0", "1 or more"),
        ("comatch alignment=0", "1 or more"),
        ("simmatch width=0", "1 or more"),
        ("simmatch alignment=0", "1 or more"),
        ("npmatch latent=0", "more than 0"),
        ("npmatch samples=0", "1 or more"),
        ("npmatch memory=0", "1 or more"),
    ],
)
def test_options_out_of_range(setting: str, expected: str, mistake: RunMistake) -> None:
    algorithm, *options = setting.split()
    flags = [word for option in options for word in ("--set", f"algorithm.{option}")]
    line = mistake("train", "digits", "--algorithm", algorithm, *flags, "--steps", "5")
    name, value = options[0].split("=")
    assert f"algorithm.{name} is {value}" in line
    assert f"expected {expected}" in line


def test_missing_data_files(
    mistake: RunMistake, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no network")

    (here / "data").mkdir()
    monkeypatch.setattr("urllib.request.urlopen", fail)
    line = mistake("train", "cifar10", "--set", f"data.root={here / 'data'}")
    assert "cifar-10-batches-py" in line
    assert "cifar10.npz" in line
    assert str(here / "data") in line


def test_folders_that_cannot_be_trained_on(mistake: RunMistake, here: Path) -> None:
    pets = write_pets(here)
    (here / "empty").mkdir()
    assert "empty" in mistake("train", "empty")
    (pets / "labeled" / "bird").mkdir()
    assert "bird" in mistake("train", "pets")
    (pets / "labeled" / "bird").rmdir()
    shutil.rmtree(pets / "labeled" / "cat")
    assert "class" in mistake("train", "pets")
    shutil.rmtree(pets / "labeled")
    assert "labeled" in mistake("train", "pets")


def test_a_csv_without_rows(mistake: RunMistake, here: Path) -> None:
    (here / "mine.csv").write_text("path,label\n")
    for command in ("train", "check"):
        assert "mine.csv has no rows" in mistake(command, "mine.csv")


def test_too_few_labels_of_a_class(mistake: RunMistake, here: Path) -> None:
    write_pets(here)
    assert "class 'cat' of pets has 3 labeled" in mistake("train", "pets", "--labels", "100")


def test_wrong_settings_for_own_pictures(mistake: RunMistake, here: Path) -> None:
    write_pets(here)
    assert "did you mean 'batch'?" in mistake("train", "pets", "--set", "training.bacth=5")
    line = mistake("train", "pets", "--steps", "5", "--minutes", "1")
    assert "give one of them" in line


@pytest.mark.parametrize("size", ["abc", "1.5", "-2"])
def test_invalid_number_of_processes(
    size: str, mistake: RunMistake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", size)
    assert f"WORLD_SIZE is '{size}', expected a number of processes" in mistake("--version")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["train", ""], "an argument"),
        (["train", "digits", "--out", ""], "--out"),
        (["train", "digits", "--out="], "--out"),
        (["predict", "run", "a.png", "--csv", ""], "--csv"),
        (["check", ""], "an argument"),
    ],
)
def test_empty_arguments(arguments: list[str], name: str, mistake: RunMistake) -> None:
    assert f"fullmatch: {name} is empty" in mistake(*arguments)


def test_an_unreadable_labeled_picture_is_named(mistake: RunMistake, here: Path) -> None:
    (write_pets(here) / "labeled" / "cat" / "broken.png").write_bytes(b"nothing")
    assert "broken.png" in mistake("train", "pets")


def test_unreadable_configs(mistake: RunMistake, here: Path) -> None:
    (here / "odd.toml").write_text("[training\n")
    assert "odd.toml is not TOML" in mistake("train", "--config", "odd.toml")
    (here / "key.toml").write_text("[training]\nstesp = 3\n")
    assert "did you mean 'steps'?" in mistake("train", "--config", "key.toml")
    (here / "type.toml").write_text('[training]\nsteps = "3"\n')
    assert "training.steps is '3', expected an integer" in mistake("train", "--config", "type.toml")
    assert "is not a regular file" in mistake("train", "--config", str(here))


def test_existing_output_folder(mistake: RunMistake, here: Path) -> None:
    (here / "mine").mkdir()
    (here / "mine" / "thesis.txt").write_text("years of work")
    assert "mine exists already" in mistake("train", "digits", "--out", "mine")
    line = mistake("train", "--out", "mine/thesis.txt")
    assert "mine/thesis.txt exists already, and is a file" in line
    assert "resume" not in line
    assert "cannot make the run folder" in mistake(
        "train", "digits", "--out", "mine/thesis.txt/run", "--steps", "1"
    )


def test_damaged_runs(mistake: RunMistake, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "digits", "--steps", "2", "--out", "run", *TINY])
    capsys.readouterr()
    complete = (here / "run" / "result.json").read_bytes()
    (here / "run" / "result.json").write_bytes(complete[:100])
    for command in ("card", "report"):
        assert "result.json" in mistake(command, "run")
    assert "write it again with: fullmatch resume run" in mistake("card", "run")
    (here / "run" / "result.json").write_bytes(complete)
    (here / "run" / "model.safetensors").write_bytes(b"")
    assert "damaged" in mistake("evaluate", "run")
    (here / "run" / "result.json").unlink()
    for state in here.glob("run/checkpoints/*/state.safetensors"):
        state.write_bytes(state.read_bytes()[:-1])
    line = mistake("resume", "run")
    assert "no usable checkpoint" in line
    assert "step-000000002 is damaged" in line
    (here / "run" / "config.toml").write_text("[data\n")
    assert "is not TOML" in mistake("resume", "run")


def test_a_nan_loss_is_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "hot.toml").write_text(tomli_w.dumps({"optimizer": {"rate": 1e30}}))
    with pytest.raises(SystemExit) as end:
        main(["train", "--config", "hot.toml", "--steps", "60", *TINY])
    line = capsys.readouterr().err
    assert end.value.code == 2
    assert line.count("\n") == 1
    assert "the loss became NaN at step" in line
    assert "--set optimizer.rate=" in line


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "1e400"])
def test_minutes_out_of_range(
    minutes: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_pets(tmp_path)
    for command in ("train", "check"):
        with pytest.raises(SystemExit, match="2"):
            main([command, "pets", "--minutes", minutes])
        assert "expected a number above 0" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["pets"]


def test_minutes_are_only_for_own_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", "digits", "--minutes", "1"])
    assert "use --steps here" in capsys.readouterr().err


@pytest.mark.parametrize("steps", ["0", "-1", "1.5"])
def test_bench_needs_at_least_one_step(steps: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["bench", "digits", "--steps", steps])
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_check_overwrites_only_its_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_pets(tmp_path)
    mine = tmp_path / "mine.csv"
    mine.write_text("path,label\n")
    with pytest.raises(SystemExit, match="2"):
        main(["check", "pets", "--out", "mine.csv"])
    assert "was not written by check" in capsys.readouterr().err
    assert mine.read_text() == "path,label\n"
    main(["check", "pets"])
    main(["check", "pets"])  # its own file may be replaced
    with pytest.raises(SystemExit, match="2"):
        main(["check", "digits"])
    assert "is a benchmark" in capsys.readouterr().err


def test_resume_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_pets(tmp_path)
    main(["train", "pets", "--steps", "2", "--set", "model.name=wrn-10-1", "--out", "run"])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    main(["evaluate", "../run"])
    (tmp_path / "run" / "result.json").unlink()
    main(["resume", "../run"])
    assert (tmp_path / "run" / "result.json").exists()


def test_too_little_memory_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        exit_on_error(lambda: print(bytearray(2**60)))
    assert capsys.readouterr().err == (
        "fullmatch: not enough memory; use smaller pictures (--set data.size=32)\n"
    )
