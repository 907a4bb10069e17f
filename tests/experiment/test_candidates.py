"""Networks for a user's own pictures, from the best to the fastest."""

from pathlib import Path

import pytest
import torch

from fullmatch.data import Source
from fullmatch.experiment.candidates import Candidate, list_candidates, weights_file
from fullmatch.experiment.source_scan import blank_source

CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture(autouse=True)
def no_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))


def source(side: int) -> Source:
    return blank_source({"a": 2, "b": 2}, unlabeled=0, test=0, side=side, channels=3)


def models(side: int, device: torch.device, *, resizable: bool = True) -> list[tuple[str, int]]:
    candidates, _ = list_candidates(source(side), device, resizable=resizable)
    return [(candidate.model, candidate.side) for candidate in candidates]


def test_sizes() -> None:
    assert models(16, CPU) == [("wrn-10-1", 16)]
    assert models(32, CPU) == [("wrn-16-2", 32), ("wrn-10-1", 32)]
    assert models(128, CPU) == [("wrn-37-2", 96), ("wrn-16-2", 32), ("wrn-10-1", 32)]
    assert models(128, GPU)[1] == ("wrn-28-2", 32)
    arrays = models(128, CPU, resizable=False)
    assert arrays == [("wrn-37-2", 128), ("wrn-16-2", 128), ("wrn-10-1", 128)]


def test_pretrained_weights_need_fewer_steps() -> None:
    candidates, (note,) = list_candidates(source(128), CPU, resizable=True)
    assert note.startswith(f"no pretrained weights here (looked for {weights_file('resnet18')})")
    weights_file("resnet18").parent.mkdir()
    weights_file("resnet18").write_bytes(b"")
    best, *others = list_candidates(source(128), CPU, resizable=True)[0]
    assert best == Candidate("resnet18", 128, enough_steps=300, pretrained=True)
    assert others == candidates
    (only,), notes = list_candidates(source(128), CPU, resizable=True, model="resnet18")
    assert only == best
    assert notes == []


@pytest.mark.parametrize(
    ("model", "side"), [("wrn-37-2", 96), ("wrn-28-8", 32), ("timm:resnet10t", 128)]
)
def test_a_requested_network_is_the_only_one(model: str, side: int) -> None:
    weights = Path("own.pth")
    (only,), notes = list_candidates(source(128), CPU, resizable=True, model=model, weights=weights)
    assert only == Candidate(model, side, enough_steps=300, weights="own.pth")
    assert notes == []
    assert only.describe() == f"network {model} on pictures of {side}x{side}"
