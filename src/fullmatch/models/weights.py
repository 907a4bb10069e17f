"""Start a network from a file of weights; tensors are matched by name and shape."""

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
from fullmatch.models.transformers import fit_tensors

# Keys under which training programs save the weights; averaged ones come first.
WEIGHT_KEYS = ("model_ema", "state_dict", "model")
WRAPPERS = ("module.", "_orig_mod.")  # prefixes that parallel and compiled modules add
SHOWN = 4  # names listed in a message


@torch.no_grad()
def load_weights(path: Path, network: Network, model: str, classes: Sequence[str]) -> str:
    """Copy the matching tensors of a file into the network; return a note about it."""
    saved = read_weights(path, classes)
    own = network.state_dict()
    file_names = {name_in_network(name, network, own): name for name in saved}
    if isinstance(network, Backbone):
        named = {name: saved[file_name] for name, file_name in file_names.items()}
        for name, tensor in fit_tensors(named, network.body, network.names.get("", "body")).items():
            saved[file_names[name]] = tensor
    matches = {
        name: file_names[name]
        for name, tensor in own.items()
        if name in file_names and saved[file_names[name]].shape == tensor.shape
    }
    if 2 * len(matches) < len(own):
        first, other = next(iter(own)), next(iter(saved))
        raise UserError(
            f"{path} fits {len(matches)} of the {len(own)} tensors of {model}, which expects "
            f"{published_name(first, network)} of {tuple(own[first].shape)}, among others; the "
            f"file has {other} of {tuple(saved[other].shape)}; choose its network with --model"
        )
    for name, file_name in matches.items():
        own[name].copy_(saved[file_name])
    used = set(matches.values())
    unused = [name for name in saved if name not in used]
    missing = [name for name in own if name not in matches and not name.startswith("head.")]
    return (
        f"starts from {path}: {len(matches)} of the {len(own)} tensors of {model}"
        + list_names("; not used from the file: ", unused)
        + list_names("; not in the file, newly initialized: ", missing)
    )


def read_weights(path: Path, classes: Collection[str]) -> dict[str, Tensor]:
    """Read the tensors of a file by name; never runs code in it."""
    path = path.expanduser()
    if not path.is_file():
        hint = "; start from a run with --from" if path.is_dir() else "; check the path"
        raise UserError(f"{path} is not a file of weights{hint}")
    is_safetensors = path.suffix == ".safetensors"
    try:
        tensors = read_safetensors(path, classes) if is_safetensors else read_pickle(path)
    except UserError:
        raise
    except SafetensorError:
        raise UserError(f"{path} is damaged or not a safetensors file; download it again") from None
    except Exception as error:  # a damaged pickle can raise anything
        reason = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
        raise UserError(
            f"{path} cannot be read{reason}; it is damaged, or holds code besides tensors: save "
            "the model's state_dict() with torch.save, or as safetensors"
        ) from None
    if not tensors:
        raise UserError(f"{path} holds no named tensors; save the model's state_dict()")
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise UserError(
                f"{path} is damaged ({name} has weights that are NaN or infinite); download it "
                "again, or choose another file"
            )
    return tensors


def read_safetensors(path: Path, classes: Collection[str]) -> dict[str, Tensor]:
    with safe_open(path, framework="pt") as file:
        metadata = (file.metadata() or {}).get("fullmatch")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if metadata is None:
        return remove_wrappers(tensors)
    # One of our own models: its body is useful for other classes. A model of the same classes may
    # have learned from labels that are held out here; `--from` checks that.
    if shared := [label for label in json.loads(metadata)["classes"] if label in classes]:
        raise UserError(
            f"{path} was already trained on {', '.join(shared[:SHOWN])}; start from its run: "
            f"--from {path.parent}"
        )
    return {
        name.removeprefix("network."): tensor
        for name, tensor in tensors.items()
        if name.startswith("network.") and not name.startswith("network.head.")
    }


def read_pickle(path: Path) -> dict[str, Tensor]:
    saved: Any = torch.load(path, map_location="cpu", weights_only=True)
    while isinstance(saved, Mapping):
        nested = next((saved[k] for k in WEIGHT_KEYS if isinstance(saved.get(k), Mapping)), None)
        if nested is None:
            return remove_wrappers({k: t for k, t in saved.items() if isinstance(t, Tensor)})
        saved = nested
    return {}


def remove_wrappers(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    def unwrap(name: str) -> str:
        for wrapper in WRAPPERS:
            if name.startswith(wrapper):
                return unwrap(name.removeprefix(wrapper))
        return name

    return {unwrap(str(name)): tensor for name, tensor in tensors.items()}


def name_in_network(name: str, network: Network, own: Collection[str]) -> str:
    """Translate the published name of a tensor to its name in the network."""
    if name in own or not isinstance(network, Backbone):
        return name
    for part, place in sorted(network.names.items(), reverse=True):  # the empty name comes last
        if not part or name.startswith(f"{part}."):
            return f"{place}.{name.removeprefix(part).lstrip('.')}"
    return name


def published_name(name: str, network: Network) -> str:
    """Translate the name of a tensor in the network to its published name."""
    if isinstance(network, Backbone):
        for part, place in network.names.items():
            if name.startswith(f"{place}."):
                return f"{part}{name.removeprefix(place)}".lstrip(".")
    return name


def list_names(introduction: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{introduction}{', '.join(names[:SHOWN])}{more}" if names else ""


def use_published_normalization(appearance: Appearance, network: Network) -> Appearance:
    """Normalize images as published weights expect them; our own networks follow the data."""
    if not isinstance(network, Backbone) or network.normalization is None:
        return appearance
    mean, std = network.normalization
    if len(appearance.mean) == 1:  # grayscale, repeated to three channels
        mean, std = (sum(mean) / len(mean),), (sum(std) / len(std),)
    return replace(appearance, mean=mean, std=std)
