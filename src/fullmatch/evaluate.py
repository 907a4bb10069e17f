"""A finished model on test images."""

import dataclasses
from typing import Any

import torch

from fullmatch import data as datasets
from fullmatch.assembly import EVALUATION_BATCH
from fullmatch.classifier import Classifier
from fullmatch.errors import UserError
from fullmatch.given import load_source
from fullmatch.results import wilson
from fullmatch.runfolder import RunFolder
from fullmatch.settings import config_of
from fullmatch.training.evaluation import probabilities, scores


def evaluated(folder: RunFolder, data: str | None = None) -> dict[str, Any]:
    """Scores of a run's model on its own test images, or on those of another data set."""
    if not folder.model.exists():
        folder.read_result()  # says how to finish a run that was stopped
    classifier = Classifier.load(folder.model)
    config = config_of(folder)
    if data is not None:
        config = dataclasses.replace(config, data=dataclasses.replace(config.data, name=data))
    source = load_source(config)
    if source.test is None or source.test_labels is None:
        raise UserError(f"{source.name} has no test images; add a folder test/CLASS/*")
    if source.classes != classifier.classes:
        raise UserError(
            f"{source.name} has classes {', '.join(source.classes)}, but the model knows "
            f"{', '.join(classifier.classes)}; evaluate it on data with the same classes"
        )
    if source.test.shape != classifier.image:
        raise UserError(
            f"{source.name} has images of {source.test.shape}, the model was trained on "
            f"{classifier.image}; choose the size with --set data.size when training"
        )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    test = source.test
    if isinstance(test, datasets.TensorStore):
        test = test.to(device)
    probs = probabilities(classifier.to(device), test, batch=EVALUATION_BATCH, device=device)
    found = scores(probs, source.test_labels)
    return {
        "data": source.name,
        "images": len(source.test_labels),
        "classes": source.classes,
        "interval": wilson(found.top1, len(source.test_labels)),
        **found.as_dict(),
    }
