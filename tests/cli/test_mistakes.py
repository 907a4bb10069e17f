"""Bad input: every mistake ends in one line and exit code 2, and leaves nothing behind."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w

from fullmatch.cli import main
from tests.small_pictures import write_pets

TINY = ("--set", "training.batch=4", "--set", "training.ratio=2", "--set", "model.name=wrn-10-1")
Mistake = Callable[..., str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mistake(here: Path, capsys: pytest.CaptureFixture[str]) -> Mistake:
    """Runs a command that must fail, and returns its one line."""

    def tree() -> dict[Path, bytes | None]:
        return {p: p.read_bytes() if p.is_file() else None for p in here.rglob("*")}

    def run(*argv: str) -> str:
        before = tree()
        with pytest.raises(SystemExit) as end:
            main(list(argv))
        found = capsys.readouterr()
        assert end.value.code == 2
        assert found.err.startswith("fullmatch: ") and found.err.count("\n") == 1
        assert "Traceback" not in found.err
        assert found.out == ""  # no notes before the mistake
        assert tree() == before
        return found.err

    return run


@pytest.mark.parametrize(
    ("command", "words"),
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
        ("train --steps many", "--steps: 'many' is no whole number"),
        ("train --steps 1.5", "--steps: '1.5' is no whole number"),
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
        ("resume nowhere", "nowhere is no run folder"),
        ("resume", "requires an argument"),
        ("evaluate nowhere", "nowhere is no run folder"),
        ("list algorithm", 'Did you mean "algorithms"?'),
        ("list", "requires an argument"),
    ],
)
def test_mistakes(command: str, words: str, mistake: Mistake) -> None:
    assert words in mistake(*command.split())


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
def test_options_outside_their_limits(setting: str, expected: str, mistake: Mistake) -> None:
    algorithm, *options = setting.split()
    given = [word for option in options for word in ("--set", f"algorithm.{option}")]
    line = mistake("train", "digits", "--algorithm", algorithm, *given, "--steps", "5")
    name, value = options[0].split("=")
    assert f"algorithm.{name} is {value}" in line and f"expected {expected}" in line


def test_data_files_that_are_not_there(
    mistake: Mistake, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no network")

    (here / "data").mkdir()
    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    line = mistake("train", "cifar10", "--set", f"data.root={here / 'data'}")
    assert "cifar-10-batches-py" in line and "cifar10.npz" in line and str(here / "data") in line


def test_folders_that_cannot_be_learned_from(mistake: Mistake, here: Path) -> None:
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


def test_a_csv_without_rows(mistake: Mistake, here: Path) -> None:
    (here / "mine.csv").write_text("path,label\n")
    for command in ("train", "check"):
        assert "mine.csv has no rows" in mistake(command, "mine.csv")


def test_labels_name_the_class_that_has_too_few(mistake: Mistake, here: Path) -> None:
    write_pets(here)
    assert "class 'cat' of pets has 3 labeled" in mistake("train", "pets", "--labels", "100")


def test_a_wrong_setting_for_own_pictures(mistake: Mistake, here: Path) -> None:
    write_pets(here)
    assert "did you mean 'batch'?" in mistake("train", "pets", "--set", "training.bacth=5")
    line = mistake("train", "pets", "--steps", "5", "--minutes", "1")
    assert "give one of them" in line


@pytest.mark.parametrize("size", ["abc", "1.5", "-2"])
def test_how_many_processes(size: str, mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", size)
    assert f"WORLD_SIZE is '{size}', expected a number of processes" in mistake("--version")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["train", ""], "an argument"),
        (["train", "digits", "--out", ""], "--out"),
        (["train", "digits", "--out="], "--out"),
        (["predict", "run", "a.png", "--csv", ""], "--csv"),
        (["check", ""], "an argument"),
    ],
)
def test_nothing_is_no_place(words: list[str], named: str, mistake: Mistake) -> None:
    assert f"fullmatch: {named} is empty" in mistake(*words)


def test_broken_labeled_picture_stops_with_its_name(mistake: Mistake, here: Path) -> None:
    (write_pets(here) / "labeled" / "cat" / "broken.png").write_bytes(b"nothing")
    assert "broken.png" in mistake("train", "pets")


def test_unreadable_configs(mistake: Mistake, here: Path) -> None:
    (here / "odd.toml").write_text("[training\n")
    assert "odd.toml is not TOML" in mistake("train", "--config", "odd.toml")
    (here / "key.toml").write_text("[training]\nstesp = 3\n")
    assert "did you mean 'steps'?" in mistake("train", "--config", "key.toml")
    (here / "type.toml").write_text('[training]\nsteps = "3"\n')
    assert "training.steps is '3', expected an integer" in mistake(
        "train", "--config", "type.toml"
    )
    assert "cannot read the config" in mistake("train", "--config", str(here))


def test_existing_output_folder(mistake: Mistake, here: Path) -> None:
    (here / "mine").mkdir()
    (here / "mine" / "thesis.txt").write_text("years of work")
    assert "mine exists already" in mistake("train", "digits", "--out", "mine")
    line = mistake("train", "--out", "mine/thesis.txt")
    assert "mine/thesis.txt exists already, and is a file" in line and "resume" not in line
    assert "cannot make the run folder" in mistake(
        "train", "digits", "--out", "mine/thesis.txt/run", "--steps", "1"
    )


def test_damaged_runs(mistake: Mistake, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "digits", "--steps", "2", "--out", "run", *TINY])
    capsys.readouterr()
    whole = (here / "run" / "result.json").read_bytes()
    (here / "run" / "result.json").write_bytes(whole[:100])
    for command in ("resume", "card", "report"):
        assert "result.json" in mistake(command, "run")
    assert "delete it, then write it anew with: fullmatch resume run" in mistake("resume", "run")
    (here / "run" / "result.json").write_bytes(whole)
    (here / "run" / "model.safetensors").write_bytes(b"")
    assert "damaged" in mistake("evaluate", "run")
    (here / "run" / "result.json").unlink()
    for state in here.glob("run/checkpoints/*/state.safetensors"):
        state.write_bytes(state.read_bytes()[:-1])
    line = mistake("resume", "run")
    assert "no whole checkpoint" in line and "step-000000002 is damaged" in line
    (here / "run" / "config.toml").write_text("[data\n")
    assert "is not TOML" in mistake("resume", "run")


def test_a_loss_that_is_no_number_is_one_line(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "hot.toml").write_text(tomli_w.dumps({"optimizer": {"rate": 1e30}}))
    with pytest.raises(SystemExit) as end:
        main(["train", "--config", "hot.toml", "--steps", "60", *TINY])
    found = capsys.readouterr().err
    assert end.value.code == 2 and found.count("\n") == 1
    assert "the loss is no longer a number" in found and "--set optimizer.rate=" in found


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "1e400"])
def test_minutes_above_nothing(
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


def test_minutes_are_for_own_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", "digits", "--minutes", "1"])
    assert "use --steps here" in capsys.readouterr().err


@pytest.mark.parametrize("steps", ["0", "-1", "1.5"])
def test_bench_takes_a_step_at_least(steps: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["bench", "digits", "--steps", steps])
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_check_overwrites_nothing_but_a_check(
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
