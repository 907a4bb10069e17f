"""Nothing reaches for the network unless it is asked to."""

import socket
from pathlib import Path
from typing import Any

import pytest

from fullmatch.cli import main
from tests.labeling.serving import serving
from tests.own_pictures import clean_folder


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any connection to another machine, and any look-up of a name, is an error of the test."""

    def refuse(*arguments: Any, **_: Any) -> None:
        raise AssertionError(f"reached for the network: {arguments[1:]}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("blocked")
def test_check_train_predict_and_report_stay_on_this_machine(tmp_path: Path) -> None:
    home, run = clean_folder(tmp_path / "pets", labels=4, unlabeled=6, size=16), tmp_path / "run"
    main(["check", str(home)])
    settings = ("model.name=wrn-10-1", "training.batch=4", "training.ratio=1", "data.size=16")
    flags = [part for setting in settings for part in ("--set", setting)]
    main(["train", str(home), "--steps", "2", "--no-baseline", "--out", str(run), *flags])
    main(["predict", str(run), str(home / "unlabeled"), "--csv", str(tmp_path / "rows.csv")])
    main(["report", str(run)])
    main(["card", str(run), "--out", str(tmp_path / "card.md")])
    main(["verify", str(run)])


@pytest.mark.usefixtures("blocked")
def test_the_labeling_page_listens_on_this_machine_only(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2, size=16)
    with serving(home, 4) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.usefixtures("blocked")
def test_the_test_notices_a_connection() -> None:
    with pytest.raises(AssertionError, match="reached for the network"):
        socket.create_connection(("192.0.2.1", 80))
