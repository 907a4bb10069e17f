"""The pictures of a report: those of the test, or else unlabeled ones and what the model says."""

from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from fullmatch import data
from fullmatch.data import ImageStore, SemiDataset, Source, Split
from fullmatch.data.stores.image_store import evenly_spaced
from fullmatch.errors import UserError
from fullmatch.evaluation.calibration import calibrated
from fullmatch.experiment.inputs import hash_of_test
from fullmatch.inference.novelty import BATCH, seen
from fullmatch.inference.suggestion import LOOKED_AT
from fullmatch.inference.trained_run import TrainedRun, refuse_gone
from fullmatch.report.gallery import Pictures
from fullmatch.storage.runs import Predictions, Run
from fullmatch.training.randomness import borrowed, seed_step


def pictures_of(run: Run, source: Source | None = None) -> tuple[Pictures | None, str]:
    """What there is to show of a run, or a sentence about why it cannot be shown."""
    if not run.finished:
        return None, ""
    tested = run.predictions is not None
    try:
        return (of_the_test if tested else of_the_unlabeled)(run, source), ""
    except UserError as error:
        kind = "test" if tested else "unlabeled"
        return None, f"The {kind} pictures cannot be shown: {error}."


def of_the_test(run: Run, source: Source | None) -> Pictures:
    assert run.predictions is not None
    asked = run.config["data"]
    if source is None:
        refuse_gone(asked["name"], run.path)
        root = Path(asked["root"]) if "root" in asked else None
        source = data.load(asked["name"], root=root, size=asked.get("size"), download=False)
    store, labels = source.test, source.test_labels
    same = labels is not None and labels.tolist() == run.predictions.labels.tolist()
    # Older results do not know which pictures they were measured on.
    if store is None or not same or run.result.get("test_hash") not in (None, hash_of_test(source)):
        raise UserError("they are no longer those of this run")
    return pictures(run, store, torch.arange(len(store)), run.predictions)


def of_the_unlabeled(run: Run, source: Source | None) -> Pictures | None:
    """Some of those whose labels the run did not see, spread evenly; None where there are none."""
    trained = TrainedRun(run.path)
    source = source or trained.source
    split = Split.load(trained.folder.split) if trained.folder.split.exists() else None
    free = torch.ones(len(source.images), dtype=torch.bool)
    free[SemiDataset.of(source, split).labeled] = False
    positions = free.nonzero().flatten()
    if not len(positions):
        return None
    positions = positions[evenly_spaced(len(positions), LOOKED_AT)]
    probs = said_of(trained, source.images, positions)
    found = Predictions(probs.numpy(), source.labels[positions].numpy())
    return pictures(run, source.images, positions, found)


def said_of(run: TrainedRun, images: ImageStore, positions: Tensor) -> Tensor:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    classifier = run.classifier.to(device)
    with borrowed(device):  # some predictions are drawn: the same in every report
        seed_step(run.config.seed, 0, 0, device)
        parts = [seen(classifier, images.read(part))[0] for part in torch.split(positions, BATCH)]
    return calibrated(torch.cat(parts).float().cpu(), run.temperature or 1.0)


def pictures(run: Run, store: ImageStore, positions: Tensor, found: Predictions) -> Pictures:
    paths, home = getattr(store, "paths", ()), Path(run.config["data"]["name"])

    def image(at: int) -> Image.Image:
        pixels = store.read(positions[at : at + 1])[0].cpu().numpy()
        return Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0))

    def name(at: int) -> str:
        number = int(positions[at])
        return short(Path(paths[number]), home) if paths else f"number {number}"

    return Pictures(image, name, found)


def short(path: Path, data: Path) -> str:
    """A picture as somebody who knows the data would name it, from its folder or CSV on."""
    home = (data if data.is_dir() else data.parent).absolute()
    path = path.absolute()
    return (path.relative_to(home) if path.is_relative_to(home) else path).as_posix()
