"""`fullmatch reproduce` from the command line to the files on disk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App, CycloptsError

from fullmatch.cli.commands import reproduce
from fullmatch.errors import UserError
from fullmatch.reproduce.ledger import Ledger

Call = Callable[..., Any]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    app = App(name="fullmatch", result_action="return_value")
    app.command(reproduce.app)
    return lambda text: app(["reproduce", *text.split()], exit_on_error=False, print_error=False)


def test_plan_starts_nothing(
    call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("table3 --cells digits-40,svhn-noextra-40 --folds 0-1 --steps 5 --plan")
    shown = capsys.readouterr().out
    assert "28 runs; the remaining ones take about" in shown
    assert "digits-40 FixMatch+ANL(w/o PL) fold 1" in shown
    assert "16.2 assumed" in shown
    assert list(tmp_path.iterdir()) == []


def test_whole_grid_of_the_paper_can_be_planned(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, count in ((1, 15 * 9 * 3), (2, 6 * 3), (4, 9 * 3)):
        call(f"table{number} --plan")
        assert f"{count} runs;" in capsys.readouterr().out


def test_table_is_run_and_written_and_not_run_again(
    call: Call, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "table1 --cells digits-40 --algorithms fixmatch,semco --folds 0 --steps 3"
    call(command)
    shown = capsys.readouterr().out
    assert "2 runs, 0 of them finished" in shown
    assert "1 run skipped" in shown
    assert "SemCo fold 0: skipped:" in shown
    assert "FixMatch fold 0: recorded in" in shown
    (entry,) = Ledger(tmp_path / "docs/results/runs").entries()
    assert entry.steps == 3
    assert entry.code is not None
    for suffix in ("md", "csv", "tex"):
        assert "FixMatch" in (tmp_path / f"runs/reproduce/table1.{suffix}").read_text()
    call(command)
    shown = capsys.readouterr().out
    assert "2 runs, 1 of them finished" in shown
    assert "recorded" not in shown


def test_table_without_any_run_is_an_error(call: Call, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing was run: 1 run skipped .* same command again"):
        call("table1 --cells digits-40 --algorithms semco --folds 0 --steps 3")
    assert (tmp_path / "runs/reproduce/table1.md").exists()


def test_table_has_only_the_requested_folds(call: Call, tmp_path: Path) -> None:
    ledger = Path(__file__).parents[2] / "docs/results/runs"
    command = f"table1 --cells digits-40 --algorithms fixmatch --steps 800 --ledger {ledger}"
    for folds, shown in (  # runs with other numbers of steps have lines of their own
        ("1", {"800": "1", "3,200": "1"}),
        ("0-2", {"800": "0,1,2", "1,600": "0", "3,200": "0,1,2"}),
    ):
        call(f"{command} --folds {folds}")
        table = (tmp_path / "runs/reproduce/table1.md").read_text()
        lines = [line.split("|") for line in table.splitlines() if "FixMatch" in line]
        assert {line[3].strip(): line[4].strip() for line in lines} == shown
        assert len(lines) == len(shown)


def test_record_page_and_figure(call: Call, runs: dict[str, Path], tmp_path: Path) -> None:
    call(f"record {runs['fixmatch']} {runs['eml']} --commit abc --dirty --note remark")
    entries = Ledger(tmp_path / "docs/results/runs").entries()
    assert [entry.name for entry in entries] == ["eml", "fixmatch"]
    assert all(entry.notes[-1] == "remark" for entry in entries)
    (tmp_path / "docs/results.md").write_text(
        "<!-- results: begin (written by `make results`; change nothing between the marks) -->"
        "<!-- results: end -->"
    )
    call("page")
    assert "(results/runs/eml.json)" in (tmp_path / "docs/results.md").read_text()
    call(f"figure 1a {runs['fixmatch']} docs/results/runs/eml.json --out pictures")
    assert (tmp_path / "pictures/pseudo-labels.png").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("tabel1", "table1"),
        ("table5", "table"),
        ("table1 --cells cifar10-40,cifer10-40", "unknown cell 'cifer10-40'"),
        ("table1 --algorithms fixmach", "did you mean 'fixmatch'"),
        ("table1 --folds x", "expected numbers such as 0-2"),
        ("table1 --steps 0 --plan", "steps is 0"),
        ("table1 --budget slow", "fast"),
        ("figure overvew runs/x", "did you mean 'overview'"),
        ("figure 1a runs/none", "is not a run folder"),
        ("record runs/none", "is not a run folder"),
        ("record runs/none --dirty", "add --commit"),
        ("page", "cannot read docs/results.md"),
        ("table1 --cells digits-40 --ledger taken --plan", "taken is a file"),
        ("table1 --cells digits-40 --runs taken", "--runs taken: "),
        ("table1 --cells digits-40 --out taken/deeper", "--out taken/deeper: "),
    ],
)
def test_mistakes(call: Call, command: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises((UserError, CycloptsError)) as caught:
        call(command)
    assert message in str(caught.value)


def test_help_needs_no_torch() -> None:
    import subprocess
    import sys

    heavy = "{'torch', 'matplotlib', 'numpy'}"
    code = f"import sys, fullmatch.cli.commands.reproduce; assert not {heavy} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_interrupt_says_how_to_continue_with_all_runs(
    call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(run: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fullmatch.display.progress.train_with_progress", stop)
    with pytest.raises(SystemExit, match="130"):
        call("table1 --cells digits-40 --algorithms fixmatch --folds 0 --steps 2 --ledger L")
    assert "run the same command again" in capsys.readouterr().out
