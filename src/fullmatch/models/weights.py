"""A network that starts from a file of weights: those of its names and shapes are taken."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fullmatch.core import Appearance, Network
from fullmatch.errors import UserError
from fullmatch.models.backbones import Backbone

# Where training programs keep the weights inside what they save; averaged ones come first.
INSIDE = ("model_ema", "state_dict", "model")
WRAPPERS = ("module.", "_orig_mod.")  # before every name, by those who train many at once
SHOWN = 4  # names in a sentence


@torch.no_grad()
def take(path: Path, network: Network, model: str, classes: Sequence[str]) -> str:
    """Copies what fits out of a file of weights; returns a sentence about it."""
    found = read(path, classes)
    own = network.state_dict()
    names = {own_name(name, network, own): name for name in found}
    fits = [
        name
        for name, tensor in own.items()
        if name in names and found[names[name]].shape == tensor.shape
    ]
    if 2 * len(fits) < len(own):
        first, other = next(iter(own)), next(iter(found))
        raise UserError(
            f"{path} fits {len(fits)} of the {len(own)} tensors of {model}, which expects "
            f"{published(first, network)} of {tuple(own[first].shape)} and others where the file "
            f"has {other} of {tuple(found[other].shape)}; name its own network with --model"
        )
    for name in fits:
        own[name].copy_(found[names[name]])
    taken = {names[name] for name in fits}
    said = f"starts from {path}: {len(fits)} of the {len(own)} tensors of {model}"
    said += listed("; left out of the file: ", [name for name in found if name not in taken])
    missing = [name for name in own if name not in fits and not name.startswith("head.")]
    return said + listed("; new, for want of them in it: ", missing)


def read(path: Path, classes: Collection[str]) -> dict[str, Tensor]:
    """The tensors of a file by name; nothing in it is ever run."""
    path = path.expanduser()
    if not path.is_file():
        hint = "; go on from a run with --from" if path.is_dir() else "; check the path"
        raise UserError(f"{path} is no file of weights{hint}")
    try:
        found = safe(path, classes) if path.suffix == ".safetensors" else unpickled(path)
    except UserError:
        raise
    except SafetensorError:
        raise UserError(f"{path} is damaged or no safetensors; get it anew") from None
    except Exception as error:  # what a damaged pickle raises is anybody's guess
        reason = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
        raise UserError(
            f"{path} cannot be read{reason}, is damaged, or holds code and not tensors alone; save "
            "the model's state_dict() with torch.save, or as safetensors"
        ) from None
    if not found:
        raise UserError(f"{path} holds no tensors by name; save the model's state_dict()")
    return found


def safe(path: Path, classes: Collection[str]) -> dict[str, Tensor]:
    with safe_open(path, framework="pt") as file:
        about = (file.metadata() or {}).get("fullmatch")
        found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if about is None:
        return unwrapped(found)
    # A model of ours: its body is of use for other classes. Where it has learned these very ones,
    # labels held out to judge by may have been among them; `--from` sees to that.
    if shared := [label for label in json.loads(about)["classes"] if label in classes]:
        raise UserError(
            f"{path} was trained on {', '.join(shared[:SHOWN])} already; go on from its run: "
            f"--from {path.parent}"
        )
    return {
        name.removeprefix("network."): tensor
        for name, tensor in found.items()
        if name.startswith("network.") and not name.startswith("network.head.")
    }


def unpickled(path: Path) -> dict[str, Tensor]:
    saved: Any = torch.load(path, map_location="cpu", weights_only=True)
    while isinstance(saved, Mapping):
        inside = next((saved[k] for k in INSIDE if isinstance(saved.get(k), Mapping)), None)
        if inside is None:
            return unwrapped({k: t for k, t in saved.items() if isinstance(t, Tensor)})
        saved = inside
    return {}


def unwrapped(found: Mapping[str, Tensor]) -> dict[str, Tensor]:
    def bare(name: str) -> str:
        for wrapper in WRAPPERS:
            if name.startswith(wrapper):
                return bare(name.removeprefix(wrapper))
        return name

    return {bare(str(name)): tensor for name, tensor in found.items()}


def own_name(name: str, network: Network, own: Collection[str]) -> str:
    """What a published tensor is called in the network."""
    if name in own or not isinstance(network, Backbone):
        return name
    for part, here in sorted(network.names.items(), reverse=True):  # the empty name comes last
        if not part or name.startswith(f"{part}."):
            return f"{here}.{name.removeprefix(part).lstrip('.')}"
    return name


def published(name: str, network: Network) -> str:
    """The other way round."""
    if isinstance(network, Backbone):
        for part, here in network.names.items():
            if name.startswith(f"{here}."):
                return f"{part}{name.removeprefix(here)}".lstrip(".")
    return name


def listed(before: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{before}{', '.join(names[:SHOWN])}{more}" if names else ""


def as_published(appearance: Appearance, network: Network) -> Appearance:
    """Pictures normalised as weights from elsewhere know them; our own networks follow the data."""
    if not isinstance(network, Backbone) or network.normal is None:
        return appearance
    mean, std = network.normal
    if len(appearance.mean) == 1:  # grey, and repeated to three
        mean, std = (sum(mean) / len(mean),), (sum(std) / len(std),)
    return replace(appearance, mean=mean, std=std)
