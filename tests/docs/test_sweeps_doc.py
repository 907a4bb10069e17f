"""The commands in docs/sweeps.md work as described."""

import re
import shlex
from pathlib import Path

import pytest

from fullmatch.cli import main
from fullmatch.experiment.cross_validation import FOLDS, MANY
from fullmatch.sweeps.space import DECADE
from tests.patterns import find_blocks
from tests.sweeps.small_sweeps import TINY

TEXT = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")
# What makes the runs short: one seed, few trials and steps, no extra models.
SHORT = {"--seeds": "0", "--trials": "2", "--steps": "2"}


def shorten(words: list[str]) -> list[str]:
    for name, value in SHORT.items():
        if name in words:
            words[words.index(name) + 1] = value
    tiny = [text for text in TINY if not any(text.split("=")[0] in word for word in words)]
    return [*words, "--score", "test", *(part for text in tiny for part in ("--set", text))]


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    grid, search, resume = (shlex.split(block)[1:] for block in find_blocks("sh", TEXT))
    assert len(re.findall("0-2", " ".join(grid))) == 1
    main(shorten(grid))
    (folder,) = Path("sweeps").iterdir()
    assert re.fullmatch(r"digits-[0-9a-f]{6}", folder.name)
    assert re.fullmatch(r"sweeps/digits-[0-9a-f]{6}", resume[-1])
    assert len(list((folder / "runs").iterdir())) == 3
    before = (folder / "sweep.csv").read_text()
    main([*resume[:-1], str(folder)])
    assert (folder / "sweep.csv").read_text() == before
    for name in re.findall(r"`((?:sweep|config|study)\.\w+)`", TEXT):
        assert (folder / name).exists() or name == "study.journal", name
    main([*shorten(search), "--out", "search"])
    assert (Path("search") / "study.journal").exists()


def test_the_job_array_is_a_command() -> None:
    (script,) = (block for block in find_blocks("text", TEXT) if "SBATCH" in block)
    command = shlex.split(script.splitlines()[-1])
    assert command[:3] == ["srun", "fullmatch", "sweep"]
    from fullmatch.cli.app import app

    function, bound, _ = app.parse_args(command[2:], exit_on_error=False, print_error=False)
    assert function.__name__ == "sweep"
    assert bound.arguments["trials"] == 32


def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = find_blocks("python", TEXT)
    space: dict[str, object] = {}
    exec(code.replace("steps=20", f"steps=2, model={'wrn-10-1'!r}"), space)
    assert "best" in dir(space["table"])


def test_numbers_match_the_code() -> None:
    assert DECADE == 10
    assert "a factor of ten" in TEXT
    assert (FOLDS, f"one part from {MANY} labels on" in " ".join(TEXT.split())) == (5, True)
