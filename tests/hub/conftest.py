"""A stand-in of the hub for each test, and a cache and a token of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.hub_server import TOKEN, Hub, serve_hub


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serve_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_XET_CACHE", str(tmp_path / "xet"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub
