"""`fullmatch card` as it is typed."""

from pathlib import Path

import pytest
from cyclopts import App

from fullmatch.cli.commands.card import card
from fullmatch.errors import UserError
from tests.full_disk import full_disk
from tests.served import pets_run

app = App(result_action="return_value")
app.command(card)


def test_to_the_terminal_or_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app(["card", str(pets_run())])
    text = capsys.readouterr().out
    assert text.startswith("# Classifier for pets\n")
    out = tmp_path / "card.md"
    app(["card", str(pets_run()), "--out", str(out)])
    assert out.read_text(encoding="utf-8") == text
    with pytest.raises(UserError, match="exists already"):
        app(["card", str(pets_run()), "--out", str(out)], exit_on_error=False)
    app(["card", str(pets_run()), "--out", str(out), "--overwrite"])
    with pytest.raises(UserError, match="cannot write"):
        app(["card", str(pets_run()), "--out", str(tmp_path / "no" / "x")], exit_on_error=False)


@pytest.mark.usefixtures("capsys")
def test_a_full_disk_takes_nothing(tmp_path: Path) -> None:
    words = ["card", str(pets_run()), "--out", str(tmp_path / "card.md")]
    with full_disk(), pytest.raises(UserError, match="cannot write"):
        app(words, exit_on_error=False)
    assert not list(tmp_path.iterdir())
    (tmp_path / "card.md").write_text("old")
    with full_disk(), pytest.raises(UserError, match="cannot write"):
        app([*words, "--overwrite"], exit_on_error=False)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
