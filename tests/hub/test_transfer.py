"""A model goes to the hub and comes back; what cannot be is one line."""

import sys
import tomllib
from pathlib import Path

import pytest
import tomli_w

import fullmatch
from fullmatch.errors import UserError
from fullmatch.hub.transfer import fetch_model, parse_place
from tests.hub.hub_server import Hub
from tests.served import digit_files, digits_run

FILES = {"README.md", "config.toml", "fullmatch.json", "model.safetensors", "result.json"}


def test_there_and_back(hub: Hub, tmp_path: Path) -> None:
    model = fullmatch.load(digits_run())
    assert model.push("me/digits", private=True) == f"{hub.address}/me/digits"
    assert {*hub.repositories["me/digits"], *hub.large["me/digits"]} == FILES
    assert hub.private == {"me/digits": True}
    pictures = list(digit_files(tmp_path / "pictures", 4))
    loaded = fullmatch.load("hf:me/digits")
    assert loaded.predict(pictures) == model.predict(pictures)
    assert loaded.result == model.result
    assert fullmatch.evaluate("hf:me/digits").scores.top1 == model.accuracy
    assert 'fullmatch.load("hf:me/digits")' in hub.repositories["me/digits"]["README.md"].decode()
    model.push("me/digits")  # again: one more commit
    commit = hub.commit("me/digits")
    assert fetch_model(f"hf:me/digits@{commit}").name == commit


def test_what_was_fetched_works_without_a_network(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    fullmatch.load(digits_run()).push("me/digits")
    folder = fetch_model("hf:me/digits")
    asked = len(hub.requests)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert fetch_model("hf:me/digits") == folder
    assert len(hub.requests) == asked
    with pytest.raises(UserError, match=r"cannot reach the hub, and me/other is not on this"):
        fetch_model("hf:me/other")
    with pytest.raises(UserError, match=r"cannot reach the hub for me/digits \(.*the network"):
        fullmatch.load(digits_run()).push("me/digits")


def test_other_repositories_are_not_opened(hub: Hub) -> None:
    """A pickle is not even fetched."""
    hub.repositories["you/pickle"] = {"pytorch_model.bin": b"\x80\x04code", "config.json": b"{}"}
    with pytest.raises(UserError, match=r"you/pickle is not a model of fullmatch: it does not"):
        fullmatch.load("hf:you/pickle")
    assert not [each for each in hub.requests if ".bin" in each or "config.json" in each]
    hub.repositories["you/half"] = {"fullmatch.json": b"{}"}
    with pytest.raises(UserError, match="is not a model of fullmatch"):
        fullmatch.load("hf:you/half")
    with pytest.raises(UserError, match="there is no you/gone on the hub"):
        fullmatch.load("hf:you/gone")
    with pytest.raises(UserError, match="no such revision"):
        fullmatch.load("hf:you/half@v9")


def test_a_model_from_the_hub_runs_no_code(hub: Hub) -> None:
    fullmatch.load(digits_run()).push("me/digits")
    files = hub.repositories["me/digits"]
    sound = tomllib.loads(files["config.toml"].decode())
    for section in ("model", "data"):
        table = sound | {section: sound[section] | {"name": "evil_module:thing"}}
        files["config.toml"] = tomli_w.dumps(table).encode()
        with pytest.raises(UserError, match=r"code evil_module:thing, and a model from the hub"):
            fullmatch.load("hf:me/digits")


@pytest.mark.parametrize("name", ["digits", "me/you/digits", "me/", "me/a b", "../etc", "me/.."])
def test_names(name: str) -> None:
    with pytest.raises(UserError, match="expected user/name"):
        parse_place(name)


def test_without_a_token(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(UserError, match="no token for the hub; log in with: hf auth login"):
        fullmatch.load(digits_run()).push("me/digits")
    assert hub.requests == []


@pytest.mark.parametrize(
    ("status", "message"), [(403, "your token may not write there"), (413, "try again later")]
)
def test_refused(hub: Hub, status: int, message: str) -> None:
    hub.refuse = status
    with pytest.raises(UserError, match=rf"refused me/digits \(status {status}\); {message}"):
        fullmatch.load(digits_run()).push("me/digits")


def test_the_package_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(UserError, match=r"pip install 'fullmatch\[hub\]'"):
        fullmatch.load("hf:me/digits")
