"""Embeddings of all pictures of a run, for its report, suggestions and `predict`."""

import torch
from torch import Tensor
from torch.nn import functional as F

from fullmatch.data import ImageStore
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.student_and_teacher import EVALUATION_BATCH
from fullmatch.models.frozen import TunedNetwork
from fullmatch.storage.features import Part, PictureFeatures


def gather_features(run: Assembly) -> PictureFeatures | None:
    """Of labeled, unlabeled and test pictures; None where no pretrained body was used."""
    if run.features is None:
        return None
    dataset = run.dataset
    labels = torch.full((len(dataset.images),), -1)
    labels[dataset.labeled] = dataset.labels[dataset.labeled]
    parts = torch.where(labels >= 0, Part.LABELED.value, Part.UNLABELED.value)
    stores, names = [dataset.images], list_names(dataset.images, "image", dataset.name)
    if dataset.test is not None and dataset.test_labels is not None:
        stores.append(dataset.test)
        labels = torch.cat([labels, dataset.test_labels])
        parts = torch.cat([parts, torch.full((len(dataset.test),), Part.TEST.value)])
        names += list_names(dataset.test, "test image", dataset.name)
    embeddings, probabilities = embed_and_predict(run, stores)
    return PictureFeatures(
        features=F.normalize(embeddings, dim=1).numpy(),
        parts=parts.numpy().astype("uint8"),
        labels=labels.numpy(),
        names=tuple(names),
        classes=tuple(dataset.classes),
        weights=run.features.model.identity,
        probabilities=probabilities.cpu().numpy(),
    )


def embed_and_predict(run: Assembly, stores: list[ImageStore]) -> tuple[Tensor, Tensor]:
    """Embeddings and class probabilities of the training pictures, then of the test pictures."""
    features = run.features
    assert features is not None
    rows = [features.plain] if features.test is None else [features.plain, features.test]
    embeddings = torch.cat(rows).float()
    if run.frozen:
        return embeddings, run.predict_embeddings("teacher", embeddings)
    network, _ = run.trained("teacher")
    if isinstance(network, TunedNetwork):  # which sees pictures in another way by now
        embeddings = torch.cat([embed_store(run, network, store) for store in stores])
    return embeddings, torch.cat([run.predict("teacher", store).cpu() for store in stores])


@torch.no_grad()
def embed_store(run: Assembly, network: TunedNetwork, store: ImageStore) -> Tensor:
    network.eval()
    rows: list[Tensor] = []
    for start in range(0, len(store), EVALUATION_BATCH):
        index = torch.arange(start, min(start + EVALUATION_BATCH, len(store)))
        view = run.augment(store.read(index).to(run.device), "plain")
        rows.append(network.pool(network.feature_map(view)).float().cpu())
    return torch.cat(rows)


def list_names(images: ImageStore, kind: str, folder: str) -> list[str]:
    """Files as seen from the data's folder, or numbers where there are none."""
    if not images.paths:
        return [f"{kind} {number}" for number in range(len(images))]
    return [name_in_folder(path, folder) for path in images.paths]


def name_in_folder(path: str, folder: str) -> str:
    """A file as seen from the data's folder, of which only the name is known."""
    marker = f"/{folder}/"
    return path.rpartition(marker)[2] if marker in path else path
