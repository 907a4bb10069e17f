"""Class names that ImageNet knows: its classifier tells such classes apart without training."""

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

CLASSES = 1000


@lru_cache(maxsize=1)
def imagenet_names() -> tuple[frozenset[str], ...]:
    """The synonyms of every ImageNet class, with the last word of each: tabby cat is also cat."""
    from timm.data.imagenet_info import ImageNetInfo

    info = ImageNetInfo()
    synonyms = [info.index_to_description(index).lower().split(",") for index in range(CLASSES)]
    return tuple(
        frozenset(name for each in names for name in (each.strip(), each.split()[-1]))
        for names in synonyms
    )


def singular_forms(name: str) -> set[str]:
    """The name as ImageNet may write it: ants -> ant, cherries -> cherry, foxes -> fox."""
    plain = " ".join(name.lower().replace("_", " ").replace("-", " ").split())
    forms = {plain}
    for ending, singular in (("s", ""), ("es", ""), ("ies", "y")):
        if plain.endswith(ending) and len(plain) > len(ending):
            forms.add(plain.removesuffix(ending) + singular)
    return forms


def match_imagenet(classes: Sequence[str]) -> Tensor | None:
    """(1000, C) ones where an ImageNet class has the name of a class.

    None unless every class has at least one ImageNet class, and no two classes share one.
    """
    forms = [singular_forms(name) for name in classes]
    matches = torch.tensor(
        [[float(not names.isdisjoint(each)) for each in forms] for names in imagenet_names()]
    )
    complete = bool((matches.sum(dim=0) > 0).all())
    return matches if complete and bool((matches.sum(dim=1) <= 1).all()) else None
