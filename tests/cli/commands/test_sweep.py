"""`fullmatch sweep`: killed and resumed, shared by processes, and mistakes in one line."""

import re
from pathlib import Path

import pytest

from fullmatch.cli import main
from tests.processes import fullmatch, wait_until
from tests.sweeps.small_sweeps import FLAGS

GRID = ["sweep", *FLAGS, "--set", "optimizer.rate=0.01,0.1", "--seeds", "0-1"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def runs_in(output: Path) -> list[str]:
    """Titles of the runs that a process has done."""
    return re.findall(r"^(optimizer.rate=\S+, seed \d):", output.read_text(), re.MULTILINE)


def test_killed_and_resumed_to_the_same_table(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = [*GRID[:-1], "0"]
    main([*grid, "--out", "whole"])
    text = capsys.readouterr().out
    assert "optimizer.rate  seeds  test accuracy, chosen on test" in text
    assert "fullmatch train --config whole/config.toml --set optimizer.rate=" in text
    scores, second = here / "killed" / "scores", here / "killed" / "runs" / "001-seed0"
    with fullmatch(*grid, "--out", "killed", output=here / "output", disk=0.2) as process:
        wait_until(lambda: (second / "checkpoints").exists(), process, 300)
        process.kill()
        process.join()
    assert [path.name for path in scores.iterdir()] == ["000-seed0.json"]
    main(["sweep", "--out", "killed"])
    text = capsys.readouterr().out
    assert "optimizer.rate=0.01, seed 0:" not in text
    for name in ("sweep.csv", "sweep.md", "sweep.svg"):
        assert (here / "killed" / name).read_bytes() == (here / "whole" / name).read_bytes()


def test_two_processes_share_the_runs(here: Path) -> None:
    outputs = [here / "one", here / "two"]
    start = [*GRID, "--out", "shared"]
    with (
        fullmatch(*start, output=outputs[0], disk=0.3) as one,
        fullmatch(*start, output=outputs[1], disk=0.3) as two,
    ):
        one.join()
        two.join()
        assert (one.exitcode, two.exitcode) == (0, 0)
    done = [runs_in(output) for output in outputs]
    assert sorted(done[0] + done[1]) == [
        f"optimizer.rate={rate}, seed {seed}" for rate in ("0.01", "0.1") for seed in (0, 1)
    ]
    assert all(done)
    assert "runs are done" not in (here / "shared" / "sweep.md").read_text()


def test_a_search(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search = ["sweep", *FLAGS, "--set", "optimizer.rate=0.001..0.1", "--out", "search"]
    main([*search, "--trials", "1"])
    main([*search, "--trials", "2"])  # a search can be continued
    assert len(list((here / "search" / "runs").iterdir())) == 2
    assert "2 settings with 1 seed each" in capsys.readouterr().out
    assert (here / "search" / "study.journal").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--set optimizer.rat=1,2", "did you mean 'rate'?"),
        ("--set optimizer.rate", "expected a.b=VALUES"),
        ("--set optimizer.rate=0.1,", "a value is empty"),
        ("--set optimizer.rate=1..0.1 --trials 2", "write the smaller number first"),
        ("--set optimizer.rate=0.1..1", "add --trials N"),
        ("--set optimizer.rate=0.1..1 --trials 0", "--trials is 0"),
        ("--seeds 4-0", "seeds '4-0': 4-0 is empty"),
        ("--seeds a", "seeds 'a': expected numbers"),
        ("--score best", "held-out"),
        ("--algorithm fulmatch", "did you mean 'fullmatch'?"),
        ("nowhere.toml", "cannot read the config nowhere.toml"),
        ("nowhere", "no data set 'nowhere'"),
        ("--out full", "full is not a sweep; start one with"),
        ("--out full --seeds 0", "full exists already and is not a sweep"),
    ],
)
def test_mistakes_are_one_line(
    arguments: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "full").mkdir()
    (here / "full" / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit) as end:
        main(["sweep", *arguments.split()])
    output = capsys.readouterr()
    assert end.value.code == 2
    assert message in output.err
    assert output.err.count("\n") == 1
    assert [path.name for path in here.rglob("*")] == ["full", "thesis.txt"]
