"""A model goes to the hub's storage in every way that its library knows, and comes back whole."""

import pytest

import fullmatch
from fullmatch.errors import UserError
from fullmatch.hub.transfer import fetch_model
from tests.hub.hub_server import Hub
from tests.served import digits_run

WAYS = ("whole", "parts", "chunks")
PART = 50_000  # bytes; the hub's are of some megabytes, and hold for files beyond 5 GB alone


def choose(way: str, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks are what the library does by itself; the others, where hf_xet is not installed."""
    if way != "chunks":
        missing = "huggingface_hub.utils._runtime.is_package_available"
        monkeypatch.setattr(missing, lambda name: False)
    hub.storage.part_size = PART if way == "parts" else None


@pytest.mark.parametrize("way", WAYS)
def test_there_and_back(way: str, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(way, hub, monkeypatch)
    model = fullmatch.load(digits_run())
    content = (digits_run() / "model.safetensors").read_bytes()
    model.push("me/digits")
    storage = hub.storage
    uploads = [each for each in storage.requests if each.startswith("PUT ") or "/xorbs/" in each]
    assert len(uploads) == (-(-len(content) // PART) if way == "parts" else 1)
    assert bool(storage.blocks) == (way == "chunks")
    assert (fetch_model("hf:me/digits") / "model.safetensors").read_bytes() == content
    storage.requests.clear()
    model.push("me/digits")  # what is there is not sent again
    assert not [each for each in storage.requests if "PUT " in each or "/xorbs/" in each]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("status", [403, 413])
def test_a_refused_file_leaves_the_repository_as_it_was(
    status: int, way: str, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(way, hub, monkeypatch)
    hub.storage.refuse = status
    model = fullmatch.load(digits_run())
    with pytest.raises(UserError, match=rf"^[^\n]*me/digits \(.*{status}[^\n]*$"):
        model.push("me/digits")
    assert hub.repositories["me/digits"] == {}
    hub.storage.refuse = 0
    model.push("me/digits")
    assert fetch_model("hf:me/digits").is_dir()


def test_without_space_for_it(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    choose("whole", hub, monkeypatch)
    hub.full = True
    with pytest.raises(UserError, match=r"refused me/digits \(.*`no space left`?\); try again"):
        fullmatch.load(digits_run()).push("me/digits")


def test_no_bars_in_a_log(hub: Hub, capfd: pytest.CaptureFixture[str]) -> None:
    fullmatch.load(digits_run()).push("me/digits")
    assert capfd.readouterr() == ("", "")
