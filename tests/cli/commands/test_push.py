"""`fullmatch push`, and commands on a model from the hub."""

from pathlib import Path

import pytest

from fullmatch.cli import main
from tests.hub.conftest import hub as hub
from tests.hub.hub_server import Hub
from tests.served import digit_files, digits_run


def test_push_then_predict(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["push", str(digits_run()), "me/digits"])
    assert capsys.readouterr().out == (
        f"Shared at {hub.address}/me/digits\nUse it with: fullmatch predict hf:me/digits PICTURES\n"
    )
    digit_files(tmp_path / "new", 2)
    main(["predict", "hf:me/digits", str(tmp_path / "new")])
    assert len(capsys.readouterr().out.splitlines()) == 3
    main(["evaluate", "hf:me/digits"])
    assert "500 test images" in capsys.readouterr().out
    main(["card", "hf:me/digits"])
    assert "# Classifier for digits" in capsys.readouterr().out


def test_mistakes_are_one_line(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (["push", str(digits_run()), "digits"], "expected user/name"),
        (["push", "nowhere", "me/digits"], "nowhere is not a run folder"),
        (["evaluate", "hf:me/gone"], "there is no me/gone on the hub"),
        (["card", "hf:gone"], "expected user/name"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(words)
        line = capsys.readouterr().err
        assert message in line
        assert line.count("\n") == 1
