"""Networks that `train` considers for somebody's own pictures, from the best to the quickest."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from fullmatch.data import Source
from fullmatch.errors import UserError


@dataclass(frozen=True)
class Choice:
    """A network and the size of its pictures."""

    model: str
    side: int
    enough: int = 1500  # steps below which a quicker choice does better
    pretrained: bool = False
    weights: str | None = None  # a file to start from


def choices(
    source: Source,
    device: torch.device,
    *,
    resizable: bool,
    model: str | None = None,
    weights: Path | None = None,
) -> tuple[list[Choice], list[str]]:
    """Candidates from the best to the quickest, and what to say about them."""
    side, notes = source.images.shape[1], list[str]()
    if weights is not None and model is None:
        raise UserError(
            "--weights needs --model, the network they belong to; see: fullmatch list models"
        )
    if model is not None:
        most = 96 if model.startswith("wrn-37") else 32 if model.startswith("wrn-") else side
        asked = Choice(model, min(side, most) if resizable else side)
        if weights is not None:
            asked = replace(asked, enough=300, weights=str(weights))
        elif model == "resnet18" and weights_file(model).is_file():
            asked = replace(asked, enough=300, pretrained=True)
        return [asked], notes
    found: list[Choice] = []
    if side >= 64:
        file = weights_file("resnet18")
        if file.is_file():
            found.append(Choice("resnet18", side, enough=300, pretrained=True))
        else:
            notes.append(
                f"no pretrained weights here (looked for {file}): the network starts from "
                "nothing, and would do better with them: --model resnet18 --weights FILE"
            )
        found.append(Choice("wrn-37-2", min(side, 96) if resizable else side))
    small = min(side, 32) if resizable else side
    if device.type == "cuda":
        found.append(Choice("wrn-28-2", small))
    if small > 16:
        found.append(Choice("wrn-16-2", small))
    return [*found, Choice("wrn-10-1", small)], notes


def weights_file(model: str) -> Path:
    """Where torchvision keeps the pretrained weights of a model."""
    from torchvision.models import get_model_weights

    url = str(get_model_weights(model).DEFAULT.url)
    return Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
