"""The weights that a network starts from: those of an earlier run, or of a file."""

from collections.abc import Collection, Sequence
from pathlib import Path

import torch
from torch import Tensor

from fullmatch.config import ModelConfig
from fullmatch.core import Network
from fullmatch.errors import UserError
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.settings import named_code
from fullmatch.models import WideResNet
from fullmatch.models.weights import load_weights
from fullmatch.storage.run_folder import RunFolder


def load_initial_weights(
    model: ModelConfig, network: Network, classes: Sequence[str], unknown: Collection[str] = ()
) -> str:
    """Copy the weights that the config names; returns a note, empty where it names none."""
    if model.start is not None:
        return copy_weights_of_run(Path(model.start), network, classes, unknown)
    if model.weights is not None:
        return load_weights(Path(model.weights), network, model.name, classes)
    return ""


@torch.no_grad()
def copy_weights_of_run(
    run: Path, network: Network, classes: Sequence[str], unknown: Collection[str] = ()
) -> str:
    """Copy the weights of a finished run, the head's class by class; returns a note.

    Classes that the run does not have keep the weights of the new network. The note names the
    unknown classes of the new run of which the earlier one had labels.
    """
    folder = RunFolder(run)
    earlier = Classifier.load(folder.model, named_code(folder))
    own, theirs = network.state_dict(), earlier.network.state_dict()
    if reads_raw_sums(network) != reads_raw_sums(earlier.network):
        raise UserError(
            f"{run} and this run differ in model.torchssl_blocks, so its weights do not fit; set "
            f"model.torchssl_blocks={str(reads_raw_sums(earlier.network)).lower()}"
        )
    if own.keys() != theirs.keys() or any(
        body_shape(name, own[name]) != body_shape(name, theirs[name]) for name in own
    ):
        raise UserError(
            f"{run} has another network than this run, or another number of channels; "
            "set model.name to its network"
        )
    rows = {label: row for row, label in enumerate(earlier.classes)}
    new = [label for label in classes if label not in rows]
    if len(new) == len(classes):
        raise UserError(f"{run} has none of these classes; train without its weights")
    for name, tensor in own.items():
        if name.startswith("head."):
            for at, label in enumerate(classes):
                if label in rows:
                    tensor[at] = theirs[name][rows[label]]
        else:
            tensor.copy_(theirs[name])
    note = f"starts from {run}" + (f"; new classes: {', '.join(new)}" if new else "")
    if seen := [label for label in earlier.classes if label in unknown]:
        note += (
            f"; it had labels of {', '.join(seen)}, unknown here, so the scores of unknown classes "
            "are too high"
        )
    return note


def reads_raw_sums(network: Network) -> bool:
    """Whether a network has TorchSSL's form of the blocks, which its tensors do not show."""
    return isinstance(network, WideResNet) and network.torchssl_blocks


def body_shape(name: str, tensor: Tensor) -> tuple[int, ...]:
    """The part of a shape that must be the same; a head has one row per class."""
    return tuple(tensor.shape[1:] if name.startswith("head.") else tensor.shape)
