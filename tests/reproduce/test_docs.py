"""The commands in docs/reproduce.md work and do what the page says."""

import shlex
import shutil
from pathlib import Path

import pytest

from fullmatch.cli import main
from tests.patterns import find_all, find_blocks

DOCS = Path(__file__).parents[2] / "docs"
TEXT, RESULTS = (DOCS / "reproduce.md").read_text(encoding="utf-8"), DOCS / "results.md"


def commands() -> list[list[str]]:
    """The words after `fullmatch reproduce` of every command in a code block."""
    blocks = find_blocks("", TEXT)
    lines = find_all(r"fullmatch reproduce (.*?)(?: &)?$", "\n".join(blocks))
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize(
    "words",
    [words for words in commands() if words[0].startswith(("table", "speed"))],
    ids=" ".join,
)
def test_tables_can_be_planned(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["reproduce", *words, *([] if "--plan" in words else ["--plan"])])
    assert "the remaining ones take about" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_figure_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (words,) = (words for words in commands() if words[:2] == ["figure", "accuracy"])
    monkeypatch.chdir(DOCS.parent)
    runs = sorted(map(str, Path().glob(words[2])))
    assert len(runs) == 6
    out = tmp_path / words[4]
    main(["reproduce", *words[:2], *runs, "--out", str(out), *words[5:]])
    assert out.exists()


def test_run_is_recorded_and_page_is_written(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record, page = (words for words in commands() if words[0] in ("record", "page"))
    shutil.copytree(runs["fullmatch"], record[1])
    (tmp_path / "docs").mkdir()
    shutil.copy(RESULTS, "docs")
    main(["reproduce", *record, "--dirty"])  # dirty, so that the example's commit is not looked up
    main(["reproduce", *page])
    assert f"[{Path(record[1]).name}]" in Path("docs/results.md").read_text(encoding="utf-8")
