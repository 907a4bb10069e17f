"""A finished model on test images."""

import dataclasses
from typing import Any

import torch

from fullmatch import data as datasets
from fullmatch.cli.terminal import say
from fullmatch.errors import UserError
from fullmatch.evaluation.scores import probabilities, scores
from fullmatch.evaluation.summary import wilson
from fullmatch.experiment.build import EVALUATION_BATCH
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.inputs import load_source
from fullmatch.experiment.leakage import learned_by, seen, unknown
from fullmatch.experiment.settings import config_of
from fullmatch.inference.trained_run import refuse_gone
from fullmatch.storage.run_folder import RunFolder


def evaluated(folder: RunFolder, data: str | None = None) -> dict[str, Any]:
    """Scores of a run's model on its own test images, or on those of another data set.

    Images that it has learned from are left out: they would only tell what it remembers.
    """
    if not folder.model.exists():
        folder.read_result()  # says how to finish a run that was stopped
    classifier = Classifier.load(folder.model)
    config = config_of(folder)
    trained_on = config.data.name
    if data is None:
        refuse_gone(trained_on, folder.path)
    else:
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
    if doubt := unknown(folder, trained_on):
        say(doubt)
    new = ~seen(learned_by(folder), source.test)
    if not new.any():
        raise UserError(
            f"the model has learned from every test image of {source.name}; evaluate it on "
            "pictures it has never seen"
        )
    if not new.all():
        say(
            f"{int((~new).sum())} of {len(new)} test images are left out: the model has learned "
            "from them"
        )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    test = source.test
    if isinstance(test, datasets.TensorStore):
        test = test.to(device)
    probs = probabilities(classifier.to(device), test, batch=EVALUATION_BATCH, device=device)
    found = scores(probs[new.to(probs.device)], source.test_labels[new])
    return {
        "data": source.name,
        "images": int(new.sum()),
        "classes": source.classes,
        "interval": wilson(found.top1, int(new.sum())),
        **found.as_dict(),
    }
