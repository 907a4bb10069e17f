"""Networks that `train` considers for a user's own pictures, from the best to the fastest."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from fullmatch.data import Source
from fullmatch.errors import UserError

FEW_STEPS = 300  # enough for a network that starts from trained weights


@dataclass(frozen=True)
class Candidate:
    """A network and the size of its pictures."""

    model: str
    side: int
    enough_steps: int = 1500  # with fewer, a faster candidate does better
    pretrained: bool = False
    weights: str | None = None  # a file to start from

    def describe(self) -> str:
        return f"network {self.model} on pictures of {self.side}x{self.side}"


def list_candidates(
    source: Source,
    device: torch.device,
    *,
    resizable: bool,
    model: str | None = None,
    weights: Path | None = None,
) -> tuple[list[Candidate], list[str]]:
    """Candidates from the best to the fastest, and notes for the user; `model` leaves only one."""
    if model is not None:
        return [requested_candidate(source, model, weights, resizable=resizable)], []
    if weights is not None:
        raise UserError(
            "--weights needs --model, the network they belong to; see: fullmatch list models"
        )
    side, notes = source.images.shape[1], list[str]()
    candidates: list[Candidate] = []
    if side >= 64:
        file = weights_file("resnet18")
        if file.is_file():
            candidates.append(Candidate("resnet18", side, FEW_STEPS, pretrained=True))
        else:
            notes.append(
                f"no pretrained weights here (looked for {file}): the network starts from random "
                "weights, and would do better with them: --model resnet18 --weights FILE"
            )
        candidates.append(Candidate("wrn-37-2", min(side, 96) if resizable else side))
    small = min(side, 32) if resizable else side
    if device.type == "cuda":
        candidates.append(Candidate("wrn-28-2", small))
    if small > 16:
        candidates.append(Candidate("wrn-16-2", small))
    return [*candidates, Candidate("wrn-10-1", small)], notes


def requested_candidate(
    source: Source, model: str, weights: Path | None, *, resizable: bool
) -> Candidate:
    """The network that the user asked for, at the largest picture size that suits it."""
    side = source.images.shape[1]
    largest = 96 if model.startswith("wrn-37") else 32 if model.startswith("wrn-") else side
    candidate = Candidate(model, min(side, largest) if resizable else side)
    if weights is not None:
        return replace(candidate, enough_steps=FEW_STEPS, weights=str(weights))
    if model == "resnet18" and weights_file(model).is_file():
        return replace(candidate, enough_steps=FEW_STEPS, pretrained=True)
    return candidate


def weights_file(model: str) -> Path:
    """Where torchvision keeps the pretrained weights of a model."""
    from torchvision.models import get_model_weights

    url = str(get_model_weights(model).DEFAULT.url)
    return Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
