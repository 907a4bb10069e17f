"""The pictures of a report: test pictures, or else unlabeled ones with their predictions."""

from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from fullmatch import data
from fullmatch.data import ImageStore, SemiDataset, Source, Split
from fullmatch.data.stores.image_store import evenly_spaced
from fullmatch.errors import UserError
from fullmatch.evaluation.calibration import apply_temperature
from fullmatch.experiment.identity import hash_test
from fullmatch.experiment.machine import choose_device
from fullmatch.inference.map_thumbnails import make_thumbnails
from fullmatch.inference.novelty import BATCH, predict_with_features
from fullmatch.inference.suggestion import SAMPLE
from fullmatch.inference.trained_run import TrainedRun, require_data
from fullmatch.storage.picture_map import Thumbnails
from fullmatch.storage.predictions import Album, Predictions
from fullmatch.storage.runs import StoredRun
from fullmatch.training.randomness import preserve_rng, seed_step


def load_album(run: StoredRun, source: Source | None = None) -> tuple[Album | None, str]:
    """The album of a run, or a sentence about why there is none; `source` saves reading it."""
    if not run.finished:
        return None, ""
    kind = "unlabeled" if run.predictions is None else "test"
    try:
        if run.predictions is None:
            return make_unlabeled_album(run, source), ""
        return make_test_album(run, run.predictions, source or load_test_source(run)), ""
    except UserError as error:
        return None, f"The {kind} pictures cannot be shown: {error}."


def load_pictures(
    run: StoredRun, source: Source | None = None
) -> tuple[Album | None, str, Thumbnails]:
    """What `load_album` returns, and thumbnails for the map of a run that has one."""
    picture_map = run.folder.read_map() if run.finished else None
    if picture_map is None:
        return *load_album(run, source), Thumbnails()
    try:
        source = source or load_source(run)
        thumbnails = make_thumbnails(picture_map, source)
    except UserError as error:
        thumbnails = Thumbnails(missing=f"The pictures cannot be shown: {error}.")
    return *load_album(run, source), thumbnails


def load_source(run: StoredRun) -> Source:
    return TrainedRun(run.path).source if run.predictions is None else load_test_source(run)


def load_test_source(run: StoredRun) -> Source:
    settings = run.settings
    require_data(settings.data, run.path)
    root = Path(settings.root) if settings.root else None
    return data.load(
        settings.data,
        root=root,
        size=settings.size,
        download=False,
        unknown_classes=settings.unknown_classes,
    )


def make_test_album(run: StoredRun, predictions: Predictions, source: Source) -> Album:
    store, labels = source.test, source.test_labels
    expected = run.result.test_hash if run.result else None  # None in older results too
    same_labels = labels is not None and labels.tolist() == predictions.labels.tolist()
    if store is None or not same_labels or expected not in (None, hash_test(source)):
        raise UserError("they have changed since this run")
    return make_album(run, store, torch.arange(len(store)), predictions)


def make_unlabeled_album(run: StoredRun, source: Source | None) -> Album | None:
    """Evenly spaced pictures whose labels the run did not see; None if there are none."""
    trained = TrainedRun(run.path)
    source = source or trained.source
    split = Split.load(run.folder.split) if run.folder.split.exists() else None
    unlabeled = torch.ones(len(source.images), dtype=torch.bool)
    unlabeled[SemiDataset.from_source(source, split).labeled] = False
    positions = unlabeled.nonzero().flatten()
    if not len(positions):
        return None
    positions = positions[evenly_spaced(len(positions), SAMPLE)]
    probs = predict(trained, source.images, positions)
    predictions = Predictions(probs.numpy(), source.labels[positions].numpy())
    return make_album(run, source.images, positions, predictions)


def predict(run: TrainedRun, images: ImageStore, positions: Tensor) -> Tensor:
    device = choose_device()
    classifier = run.classifier.to(device)
    with preserve_rng(device):  # some methods sample predictions: seeded, so that reports repeat
        seed_step(run.config.seed, 0, 0, device)
        batches = torch.split(positions, BATCH)
        probs = [predict_with_features(classifier, images.read(batch))[0] for batch in batches]
    return apply_temperature(torch.cat(probs).float().cpu(), run.temperature or 1.0)


def make_album(
    run: StoredRun, store: ImageStore, positions: Tensor, predictions: Predictions
) -> Album:
    data_path = Path(run.settings.data)

    def image(at: int) -> Image.Image:
        pixels = store.read(positions[at : at + 1])[0].cpu().numpy()
        return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))

    def name(at: int) -> str:
        position = int(positions[at])
        if not store.paths:
            return f"number {position}"
        return relative_name(Path(store.paths[position]), data_path)

    return Album(image, name, predictions)


def relative_name(path: Path, data_path: Path) -> str:
    """The path of a picture from the data's folder, or from the CSV's, on."""
    home = (data_path if data_path.is_dir() else data_path.parent).absolute()
    path = path.absolute()
    return (path.relative_to(home) if path.is_relative_to(home) else path).as_posix()
