"""What users expect of any program: completion, no colors on request, a man page, stated exits."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fullmatch.cli import app, main
from tests.patterns import find_all, find_blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
COLOR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-7]|4[0-7]|9[0-7])(?:;[0-9]+)*m")
# Asks the completion of bash for the words that continue a line.
COMPLETE = """
source /dev/stdin
COMP_WORDS=(fullmatch {0})
COMP_CWORD={1}
_fullmatch
echo "${{COMPREPLY[@]}}"
"""


def table_below(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, as cells."""
    rows = find_all(r"^\|.*\|$", PAGE.partition(f"## {heading}\n")[2].partition("\n\n\n")[0])
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    start = next(number for number, row in enumerate(cells) if set(row[0]) == {"-"}) + 1
    end = next((n for n in range(start, len(cells)) if set(cells[n][0]) == {"-"}), len(cells) + 1)
    return cells[start : end - 1]


def sources() -> Iterator[str]:
    for path in sorted((ROOT / "src" / "fullmatch").rglob("*.py")):
        yield path.read_text(encoding="utf-8")


def test_all_variables_are_documented() -> None:
    call = r"os\.environ(?:\.get\(|\[|\.setdefault\()"
    pattern = call + r"""["'](\w+)["']|["'](\w+)["'] (?:not )?in os\.environ"""
    read = {"".join(names) for text in sources() for names in re.findall(pattern, text)}
    rows = table_below("Variables that are read")
    assert read == {name for row in rows for name in find_all(r"`(\w+)`", row[0])}


def test_all_exit_codes_are_documented() -> None:
    raised = {code for text in sources() for code in re.findall(r"SystemExit\(([\w.]+)\)", text)}
    codes = {int(code) if code.isdigit() else vars(app)[code] for code in raised}
    # Python itself exits with 0 and, after a traceback, with 1.
    assert {int(row[0]) for row in table_below("Exit codes")} == {0, 1, *codes}


@pytest.mark.parametrize(
    ("words", "expected"),
    [("tra", "train"), ("train --algo", "--algorithm"), ("reproduce fig", "figure")],
)
def test_bash_completes(words: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", "bash"])
    script = COMPLETE.format(words, len(words.split()))
    done = subprocess.run(
        ["bash", "-c", script], input=capsys.readouterr().out, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert expected in done.stdout.split()


def test_every_shell_of_the_page_has_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    shells = find_all(r"^fullmatch completion (\w+) > ", "".join(find_blocks("sh", PAGE)))
    assert shells == ["bash", "zsh", "fish"]
    for shell in shells:
        main(["completion", shell])
        assert "suggest" in capsys.readouterr().out


@pytest.mark.parametrize("command", [("--help",), ("list", "algorithms")])
def test_no_color(command: tuple[str, ...]) -> None:
    environment = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    outputs = [
        subprocess.run(
            [sys.executable, "-m", "fullmatch", *command],
            env=environment | extra, capture_output=True, text=True, check=True,
        ).stdout
        for extra in ({}, {"NO_COLOR": "1"})
    ]  # fmt: skip
    assert "\x1b[" in outputs[0]  # a terminal is pretended
    assert COLOR.search(outputs[0]) or command != ("--help",)
    assert not COLOR.search(outputs[1])


def test_man_page(tmp_path: Path) -> None:
    page = tmp_path / "fullmatch.1"
    rendered = runpy.run_path(str(ROOT / "docs" / "command_help.py"))["render_man_page"]()
    page.write_text(rendered, encoding="utf-8")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8", str(page)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    shown = re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout)
    for name in app.app:
        assert re.search(rf"^\s+{re.escape(name)}$", shown, re.MULTILINE) or name[0] == "-", name
    assert "labeled/CLASS/*" in shown
    assert re.search(r"^ +fullmatch check \[OPTIONS\] DATA$", shown, re.MULTILINE)
