"""Is a picture like those a model learned from? Its features lie near theirs, or they do not.

The features of up to 2,000 training pictures, labeled or not, are kept. The distance of a picture
is that to its fifth-nearest of them, and it is unlike the training pictures when it lies further
off than 99 % of these lie from one another. So about 1 % of ordinary pictures are flagged too, and
a strange picture that the network takes for an ordinary one is not.
"""

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fullmatch.data.stores.image_store import ImageStore, evenly_spaced
from fullmatch.errors import UserError
from fullmatch.experiment.classifier import Classifier
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.tensors import write_tensors

NAME = "familiar.safetensors"  # beside the model
KEPT, LEAST = 2000, 50  # training pictures compared with, and how many make a judgement
NEIGHBOUR = 5  # not the nearest, since sets may hold every picture twice
SHARE = 0.99  # of the training pictures that count as like the others
BATCH = 64


class Familiarity:
    """Features of training pictures, and the distance from them that is still usual."""

    def __init__(self, features: Tensor, limit: float) -> None:
        self.features, self.limit = features, limit  # (N, D)

    @classmethod
    def measured(cls, classifier: Classifier, images: ImageStore) -> "Familiarity | None":
        """From training pictures, spread evenly; None where they are too few to judge by."""
        if len(images) < LEAST:
            return None
        index = evenly_spaced(len(images), KEPT)
        parts = (images.read(index[at : at + BATCH]) for at in range(0, len(index), BATCH))
        features = torch.cat([seen(classifier, part)[1].cpu() for part in parts])
        # Each picture is its own nearest, so its neighbours are counted from there.
        usual = distance(features, features, NEIGHBOUR + 1).double().quantile(SHARE).item()
        return cls(features, usual)

    def unlike(self, features: Tensor) -> Tensor:
        """(B, D) pooled features -> (B,) whether the picture is unlike the training pictures."""
        return distance(features.cpu(), self.features, NEIGHBOUR) > self.limit

    def save(self, path: Path, model: Path) -> None:
        """Write it beside the model that it belongs to."""
        tensors = {"features": self.features, "limit": torch.tensor(self.limit)}
        write_tensors(path, tensors, model=digest(model))

    @classmethod
    def load(cls, path: Path, model: Path) -> "Familiarity | None":
        """What `save` wrote for this very model; None for another's, or none that is whole."""
        try:
            with safe_open(path, framework="pt") as file:
                if file.metadata()["model"] != digest(model):
                    return None
                return cls(file.get_tensor("features"), file.get_tensor("limit").item())
        except (OSError, SafetensorError, KeyError, TypeError):
            return None


def familiarity_of(run: TrainedRun) -> tuple[Familiarity | None, str]:
    """As stored beside the model, or else measured now and stored; or None, and why."""
    place = run.folder.path / NAME
    if found := Familiarity.load(place, run.folder.model):
        return found, ""
    try:
        found = Familiarity.measured(run.classifier, run.source.images)
    except UserError as error:
        return None, f"pictures unlike the training ones are not flagged: {error}"
    if found is None:
        return None, (
            "pictures unlike the training ones are not flagged: that takes "
            f"{LEAST} training pictures, and there were {len(run.source.images)}"
        )
    try:
        found.save(place, run.folder.model)
    except (OSError, SafetensorError):
        return found, f"{place} cannot be written, so it is measured again each time"
    return found, ""


@torch.no_grad()
def seen(classifier: Classifier, images: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and pooled features, both of one pass through the network."""
    kept: list[Tensor] = []
    hook = classifier.network.register_forward_hook(
        lambda network, inputs, output: kept.append(output.features.float())
    )
    device = next(classifier.network.parameters()).device
    try:
        probs = classifier(images.to(device))
    finally:
        hook.remove()
    return probs, kept[0]


def distance(points: Tensor, others: Tensor, neighbour: int) -> Tensor:
    """(N,) how far each point is from the other points' n-th nearest to it."""
    return torch.cdist(points, others).topk(neighbour, largest=False).values[:, -1]


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
