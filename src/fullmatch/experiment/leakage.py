"""Which pictures a run has learned from, kept as digests: none of them tells how good it is."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from fullmatch.data import DATASETS, FileStore, ImageStore, SemiDataset
from fullmatch.data.quality.fingerprints import digests_of
from fullmatch.errors import UserError
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.settings import config_of
from fullmatch.storage.run_folder import RunFolder
from fullmatch.training.health import Finding

SEEN = "test seen before"  # the kind of finding
Learned = Mapping[str, Tensor]  # digests, by the shape of the pictures they were taken of


def learned_from(run: Assembly) -> Learned:
    """What a run learns from, and what the run did whose weights it starts from.

    Benchmarks are known by their names, and keep no digests.
    """
    start = run.config.model.start
    found = dict(learned_by(RunFolder(Path(start)))) if start else {}
    for name, own in own_of(run).items():
        found[name] = torch.unique(torch.cat([found[name], own]) if name in found else own)
    return found


def own_of(run: Assembly) -> Learned:
    """The pictures that a run itself looks at."""
    dataset, practised = run.dataset, run.state.algorithm.views.unlabeled
    if dataset.benchmark:
        return {}
    used = torch.cat([dataset.labeled, dataset.unlabeled]) if practised else dataset.labeled
    return {"x".join(map(str, dataset.images.shape)): keys_of(dataset.images)[used]}


def all_learned(run: Assembly, known: Learned) -> bool:
    """Whether every picture of a run is among those that it began with."""
    parts = own_of(run).items()
    return all(name in known and bool(torch.isin(own, known[name]).all()) for name, own in parts)


def learned_by(folder: RunFolder) -> Learned:
    """What a run wrote down; nothing where it is a benchmark's, or from before that was done."""
    if not folder.learned.exists():
        return {}
    try:
        return load_file(folder.learned)
    except (OSError, SafetensorError) as error:
        raise UserError(
            f"cannot read {folder.learned}: {error}; bring a whole one, or delete it and check "
            "yourself that no test picture was learned from"
        ) from None


def doubts(run: Assembly) -> list[str]:
    """What cannot be said about the test of a run that starts from another."""
    start = run.config.model.start
    if start is None or run.dataset.test is None:
        return []
    earlier = RunFolder(Path(start))
    if not earlier.config.is_file():  # gone since this run took over what it had kept
        return []
    doubt = unknown(earlier, config_of(earlier).data.name)
    return [doubt] if doubt else []


def unknown(folder: RunFolder, data: str) -> str:
    """A sentence where a run on such data kept no digests, as earlier versions did not; else ''."""
    if folder.learned.exists() or data in DATASETS:
        return ""
    return (
        f"which pictures {folder.path} has learned from was not kept; see to it yourself that none "
        "is in the test"
    )


def seen(learned: Learned, store: ImageStore) -> Tensor:
    """(N,) bool: which pictures of a store are among them, whatever size it has them at."""
    found = torch.zeros(len(store), dtype=torch.bool)
    paths: tuple[str, ...] = getattr(store, "paths", ())
    for name, keys in learned.items():
        channels, height, width = map(int, name.split("x"))
        if store.shape == (channels, height, width):
            found |= torch.isin(keys_of(store), keys)
        elif paths:
            found |= torch.isin(keys_of(FileStore(paths, (height, width), channels)), keys)
    return found


def seen_in_test(learned: Learned, dataset: SemiDataset) -> list[Finding]:
    """A finding where test pictures taught the earlier run; this one's own are never among them."""
    count = 0 if dataset.test is None else int(seen(learned, dataset.test).sum())
    if dataset.test is None or not count:
        return []
    words = (
        f"{count} of {len(dataset.test)} test pictures taught the run that this one starts from: "
        "the accuracy on the test is too high"
    )
    return [Finding(SEEN, words, "test pictures that no run has learned from")]


def keys_of(store: ImageStore) -> Tensor:
    """(N,) int64: half of each picture's digest is enough to tell millions apart."""
    halves = b"".join(digest[:8] for digest in digests_of(store))
    return torch.from_numpy(np.frombuffer(halves, "<i8").astype(np.int64))
