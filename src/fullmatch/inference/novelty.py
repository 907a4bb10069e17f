"""Pictures unlike the training pictures, found by the distance between features.

The features of up to 2,000 training pictures, labeled or not, are stored. A picture's distance is
the distance to its fifth-nearest neighbor among them. The picture is novel when that is farther
than 99 % of the training pictures are from each other. About 1 % of ordinary pictures are therefore
flagged too, and a novel picture whose features look ordinary is missed.
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

MOST_IMAGES = 2000  # training pictures whose features are stored
LEAST_IMAGES = 50  # with fewer, nothing is flagged
NEIGHBOR = 5  # not the nearest, since a data set may hold every picture twice
USUAL = 0.99  # fraction of the training pictures within the threshold
BATCH = 64


class NoveltyDetector:
    """Features of training pictures, and the largest distance from them that is still usual."""

    def __init__(self, features: Tensor, threshold: float) -> None:
        self.features, self.threshold = features, threshold  # (N, D)

    @classmethod
    def fit(cls, classifier: Classifier, images: ImageStore) -> "NoveltyDetector | None":
        """From evenly spaced training pictures; None if there are too few."""
        if len(images) < LEAST_IMAGES:
            return None
        index = evenly_spaced(len(images), MOST_IMAGES)
        batches = (images.read(index[at : at + BATCH]) for at in range(0, len(index), BATCH))
        features = torch.cat([predict_with_features(classifier, b)[1].cpu() for b in batches])
        # Each picture is its own nearest neighbor, so one more is counted.
        distances = neighbor_distances(features, features, NEIGHBOR + 1)
        return cls(features, distances.double().quantile(USUAL).item())

    def is_novel(self, features: Tensor) -> Tensor:
        """(B, D) pooled features -> (B,) bool."""
        return neighbor_distances(features.cpu(), self.features, NEIGHBOR) > self.threshold

    def save(self, path: Path, model: Path) -> None:
        """Write it to a file that names the model it belongs to."""
        tensors = {"features": self.features, "limit": torch.tensor(self.threshold)}
        write_tensors(path, tensors, model=file_hash(model))

    @classmethod
    def load(cls, path: Path, model: Path) -> "NoveltyDetector | None":
        """Read what `save` wrote for this model; None if it is missing, damaged or another's."""
        try:
            with safe_open(path, framework="pt") as file:
                if file.metadata()["model"] != file_hash(model):
                    return None
                return cls(file.get_tensor("features"), file.get_tensor("limit").item())
        except (OSError, SafetensorError, KeyError, TypeError):
            return None


def load_or_fit_detector(run: TrainedRun) -> tuple[NoveltyDetector | None, str]:
    """The run's detector, stored for the next time; and a note if there is something to say."""
    path = run.folder.novelty
    if detector := NoveltyDetector.load(path, run.folder.model):
        return detector, ""
    try:
        detector = NoveltyDetector.fit(run.classifier, run.source.images)
    except UserError as error:
        return None, f"pictures unlike the training pictures are not flagged: {error}"
    if detector is None:
        return None, (
            "pictures unlike the training pictures are not flagged: that needs at least "
            f"{LEAST_IMAGES} training pictures, and there are {len(run.source.images)}"
        )
    try:
        detector.save(path, run.folder.model)
    except (OSError, SafetensorError):
        return detector, f"cannot write {path}, so it is computed again each time"
    return detector, ""


@torch.no_grad()
def predict_with_features(classifier: Classifier, images: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and pooled features from one pass through the network."""
    captured: list[Tensor] = []
    hook = classifier.network.register_forward_hook(
        lambda network, inputs, output: captured.append(output.features.float())
    )
    device = next(classifier.network.parameters()).device
    try:
        probs = classifier(images.to(device))
    finally:
        hook.remove()
    return probs, captured[0]


def neighbor_distances(points: Tensor, others: Tensor, neighbor: int) -> Tensor:
    """(N,) distance from each point to its n-th nearest among the others.

    Not scikit-learn's: its distances differ by 1e-5, and stored thresholds come from these.
    """
    return torch.cdist(points, others).topk(neighbor, largest=False).values[:, -1]


def file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
