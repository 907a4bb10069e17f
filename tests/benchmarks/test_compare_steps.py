"""Two versions of the code are measured in turn and compared."""

from pathlib import Path

import pytest

import fullmatch
from benchmarks import compare_steps

SOURCE = Path(fullmatch.__file__).parents[1]
SMALL = ("digits", "--model", "wrn-10-1", "--batch", "2", "--steps", "1")


def test_both_versions_run_in_turn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    calls: list[tuple[str, list[str]]] = []

    def measure(source: Path, arguments: list[str]) -> float:
        calls.append((source.name, arguments))
        return {"old": 100.0, "new": 110.0}[source.name]

    monkeypatch.setattr(compare_steps, "measure", measure)
    folders = ["--old", str(tmp_path / "old"), "--new", str(tmp_path / "new")]
    compare_steps.main([*folders, "--rounds", "2"])
    assert [name for name, _ in calls] == ["old", "new", "new", "old"]
    assert calls[0][1] == ["cifar10", "--algorithm", "fullmatch"]
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "median: old 100.00, new 110.00 steps/s; new / old = 1.1000"
    compare_steps.main([*folders, "--rounds", "1", *SMALL])
    assert calls[-1][1] == list(SMALL)


def test_measures_the_code_of_the_given_folder(tmp_path: Path) -> None:
    assert compare_steps.measure(SOURCE, SMALL) > 0
    with pytest.raises(SystemExit, match=r"benchmark of .* failed"):
        compare_steps.measure(tmp_path, SMALL)
