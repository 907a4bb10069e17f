"""Methods and data sets as papers write them."""

from collections.abc import Mapping
from typing import Any

from fullmatch.algorithms import ALGORITHMS

# Where a class cannot have the published name.
PUBLISHED = {
    "supervised": "supervised",
    "pi_model": "Pi-Model",
    "pseudo_label": "Pseudo-Label",
    "mean_teacher": "Mean Teacher",
    "ups_offline": "UPS (offline)",
    "crmatch": "CR",
    "npmatch": "NP-Match",
    "fullmatch": "FullMatch",
    "fullflex": "FullFlex",
}
FULL = {"FixMatch": "FullMatch", "FlexMatch": "FullFlex"}
LOSSES = {"entropy_meaning": "EML", "adaptive_negative": "ANL"}
DATA = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "digits": "Digits",
    "fashion-mnist": "Fashion-MNIST",
    "imagenet": "ImageNet",
    "stl10": "STL-10",
    "svhn": "SVHN",
    "svhn-noextra": "SVHN (no extra)",
}


def method_name(algorithm: Mapping[str, Any]) -> str:
    """The published name of a spec's table, such as FullMatch or FixMatch + EML."""
    host, losses = plain_name(str(algorithm["name"])), algorithm.get("full")
    if losses is None:
        return host
    used = [short for field, short in LOSSES.items() if losses.get(field, True)]
    return " + ".join([host, *used]) if len(used) < 2 else full_name(host)


def algorithm_name(name: str) -> str:
    """The published name of what `--algorithm` takes, such as full-softmatch."""
    if name in PUBLISHED:
        return PUBLISHED[name]
    plain = plain_name(name.removeprefix("full-"))
    return full_name(plain) if name.startswith("full-") else plain


def plain_name(name: str) -> str:
    """The name of the spec's class, unless the published one is different."""
    if name in PUBLISHED:
        return PUBLISHED[name]
    return ALGORITHMS[name].__name__ if name in ALGORITHMS else name.rpartition(":")[2]


def full_name(host: str) -> str:
    return FULL.get(host, f"Full-{host}")


def data_name(name: str) -> str:
    return DATA.get(name, name)
