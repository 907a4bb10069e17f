"""A network that starts from an earlier run, where classes new to it start anew, or from a file."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from fullmatch.config import ModelConfig
from fullmatch.core import Network
from fullmatch.errors import UserError
from fullmatch.experiment.classifier import Classifier
from fullmatch.models.weights import load_weights


def started(model: ModelConfig, network: Network, classes: Sequence[str]) -> str:
    """Copies the weights that the config names; returns a sentence, empty where it names none."""
    if model.start is not None:
        return start_from(Path(model.start), network, classes)
    if model.weights is not None:
        return load_weights(Path(model.weights), network, model.name, classes)
    return ""


@torch.no_grad()
def start_from(run: Path, network: Network, classes: Sequence[str]) -> str:
    """Copies the weights of a finished run, the head's class by class; returns a sentence."""
    old = Classifier.load(run / "model.safetensors")
    own, theirs = network.state_dict(), old.network.state_dict()
    if own.keys() != theirs.keys() or any(
        body_shape(name, own[name]) != body_shape(name, theirs[name]) for name in own
    ):
        raise UserError(
            f"{run} has another network than this run, or other channels; set model.name to its own"
        )
    rows = {label: row for row, label in enumerate(old.classes)}
    new = [label for label in classes if label not in rows]
    if len(new) == len(classes):
        raise UserError(f"{run} knows none of these classes; train without its weights")
    for name, tensor in own.items():
        if name.startswith("head."):
            for at, label in enumerate(classes):
                if label in rows:
                    tensor[at] = theirs[name][rows[label]]
        else:
            tensor.copy_(theirs[name])
    return f"starts from {run}" + (f"; new to it: {', '.join(new)}" if new else "")


def body_shape(name: str, tensor: Tensor) -> tuple[int, ...]:
    """What has to be alike; a head has a row for each class, and those may be others."""
    return tuple(tensor.shape[1:] if name.startswith("head.") else tensor.shape)
