"""Pictures unlike the training pictures, found by the distance between features.

The features of up to 2,000 training pictures, labeled or not, are stored. A picture's distance is
the distance to its fifth-nearest neighbor among them. The picture is novel when that is farther
than 99 % of the training pictures are from each other. About 1 % of ordinary pictures are therefore
flagged too, and a novel picture whose features look ordinary is missed.

On a pretrained body, features are the body's descriptors: embeddings, which are centered on the
training pictures, hardly tell other pictures from them.
"""

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fullmatch.data import Source
from fullmatch.data.stores.features import FeatureStore
from fullmatch.data.stores.image_store import ImageStore, evenly_spaced
from fullmatch.errors import UserError
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.feature_pass import read_descriptors
from fullmatch.files.reading import require_tensors
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.models.frozen import FrozenNetwork
from fullmatch.storage.manifest import hash_file
from fullmatch.storage.tensors import write_tensors
from fullmatch.training.randomness import preserve_rng

MOST_IMAGES = 2000  # training pictures whose features are stored
FEW_IMAGES = 500  # the same where features take long
LEAST_IMAGES = 50  # with fewer, nothing is flagged
NEIGHBOR = 5  # not the nearest, since a data set may hold every picture twice
USUAL = 0.99  # fraction of the training pictures within the threshold
BATCH = 64


class NoveltyDetector:
    """Features of training pictures, and the largest distance from them that is still usual."""

    def __init__(self, features: Tensor, threshold: float) -> None:
        self.features, self.threshold = features, threshold  # (N, D)

    @classmethod
    def fit(
        cls, classifier: Classifier, images: ImageStore, most: int = MOST_IMAGES
    ) -> "NoveltyDetector | None":
        """From evenly spaced training pictures; None if there are too few."""
        if len(images) < LEAST_IMAGES:
            return None
        index = evenly_spaced(len(images), most)
        batches = (images.read(index[at : at + BATCH]) for at in range(0, len(index), BATCH))
        rows = [predict_with_descriptors(classifier, batch)[1].cpu() for batch in batches]
        return cls.from_features(torch.cat(rows))

    @classmethod
    def from_features(cls, features: Tensor) -> "NoveltyDetector":
        """From features (N, D) of training pictures."""
        # Each picture is its own nearest neighbor, so one more is counted.
        distances = neighbor_distances(features, features, NEIGHBOR + 1)
        return cls(features, distances.double().quantile(USUAL).item())

    def is_novel(self, features: Tensor) -> Tensor:
        """(B, D) features -> (B,) bool."""
        return neighbor_distances(features.cpu(), self.features, NEIGHBOR) > self.threshold

    def save(self, path: Path, model: Path) -> None:
        """Write it to a file that names the model it belongs to."""
        tensors = {"features": self.features, "limit": torch.tensor(self.threshold)}
        write_tensors(path, tensors, model=hash_file(model))

    @classmethod
    def load(cls, path: Path, model: Path) -> "NoveltyDetector | None":
        """Read what `save` wrote for this model; None if it is missing, damaged or another's."""
        try:
            require_tensors(path)
            with safe_open(path, framework="pt") as file:
                if file.metadata()["model"] != hash_file(model):
                    return None
                features, limit = file.get_tensor("features").float(), file.get_tensor("limit")
        except (OSError, ValueError, SafetensorError, KeyError, TypeError):
            return None
        usable = features.ndim == 2 and len(features) >= NEIGHBOR and features.isfinite().all()
        usable = usable and limit.numel() == 1 and limit.isfinite().all()
        return cls(features, float(limit)) if usable else None


def load_detector(run: TrainedRun) -> NoveltyDetector | None:
    """The detector that is stored with a run; None if there is none that fits its model."""
    network = run.classifier.network  # first, since it refuses a damaged model
    detector = NoveltyDetector.load(run.folder.novelty, run.folder.model)
    if detector is None:
        return None
    if isinstance(network, FrozenNetwork):
        width = sum(network.embedding.widths)  # earlier versions stored embeddings
    else:
        with preserve_rng(torch.device("cpu")):
            picture = torch.zeros(1, *run.classifier.picture, dtype=torch.uint8)
            width = predict_with_features(run.classifier, picture)[1].shape[1]
    return detector if detector.features.shape[1] == width else None


def load_or_fit_detector(run: TrainedRun) -> tuple[NoveltyDetector | None, str]:
    """The run's detector, stored for the next time; and a note if there is something to say."""
    if detector := load_detector(run):
        return detector, ""
    try:
        detector = fit_detector(run, run.source)
    except UserError as error:
        return None, f"pictures unlike the training pictures are not flagged: {error}"
    if detector is None:
        return None, (
            "pictures unlike the training pictures are not flagged: that needs at least "
            f"{LEAST_IMAGES} training pictures, and there are {len(run.source.images)}"
        )
    try:
        detector.save(run.folder.novelty, run.folder.model)
    except (OSError, SafetensorError):
        return detector, f"cannot write {run.folder.novelty}, so it is computed again each time"
    return detector, ""


def store_detector(run: TrainedRun, source: Source) -> None:
    """Store the detector of a run that was just trained, so that `predict` needs no pictures."""
    if isinstance(source.images, FeatureStore) or load_detector(run) is not None:
        return
    detector = fit_detector(run, source)
    if detector is not None:
        detector.save(run.folder.novelty, run.folder.model)


def fit_detector(run: TrainedRun, source: Source) -> NoveltyDetector | None:
    """From descriptors that the run has kept, or else from the pictures; None if they are few."""
    images, folder = source.images, run.folder
    if not isinstance(run.classifier.network, FrozenNetwork):
        with preserve_rng(torch.device("cpu")):
            return NoveltyDetector.fit(run.classifier, images)
    features = folder.read_features() if run.config.model.body == "frozen" else None
    rows = None
    if features is not None and len(images) >= LEAST_IMAGES:
        crops, seed = run.config.model.crops, run.config.seed
        rows = read_descriptors(folder.feature_cache, features.weights, images, crops, seed)
    if rows is None:
        return NoveltyDetector.fit(run.classifier, images, FEW_IMAGES)
    chosen = rows[evenly_spaced(len(rows), MOST_IMAGES).numpy()]
    return NoveltyDetector.from_features(torch.from_numpy(chosen).float())


@torch.no_grad()
def predict_with_features(classifier: Classifier, images: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and pooled features from one pass through the network."""
    return capture(classifier, images, descriptors=False)


@torch.no_grad()
def predict_with_descriptors(classifier: Classifier, images: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities, and descriptors of a pretrained body, or else pooled features."""
    return capture(classifier, images, descriptors=isinstance(classifier.network, FrozenNetwork))


def capture(classifier: Classifier, images: Tensor, *, descriptors: bool) -> tuple[Tensor, Tensor]:
    network, captured = classifier.network, list[Tensor]()
    if descriptors:
        assert isinstance(network, FrozenNetwork)
        hook = network.body.register_forward_hook(
            lambda body, inputs, output: captured.append(output.float())
        )
    else:
        hook = network.register_forward_hook(
            lambda network, inputs, output: captured.append(output.features.float())
        )
    device = next(network.parameters()).device
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
