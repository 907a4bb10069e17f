"""Which pictures a run was trained on, saved as digests: none of them may measure it."""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from fullmatch.data import FileStore, ImageStore, SemiDataset, find_benchmark
from fullmatch.data.quality.fingerprints import compute_digests
from fullmatch.experiment.build import Assembly
from fullmatch.experiment.model_file import LARGEST_PICTURE
from fullmatch.experiment.settings import read_config
from fullmatch.files.reading import require_tensors
from fullmatch.storage.result import HealthFinding
from fullmatch.storage.run_folder import RunFolder, read_file

SHAPE = re.compile(r"[1-9]\d{0,5}(x[1-9]\d{0,5}){2}")  # channels, height and width
MOST_SIZES = 100  # of pictures, each of which would be compared with all test pictures
LEAKED = "test seen before"  # the kind of finding
Learned = Mapping[str, Tensor]  # digests, by the shape of the pictures they were taken of


def pictures_learned_by(run: Assembly) -> Learned:
    """The pictures of a run, and of the run whose weights it starts from.

    Benchmarks are identified by name, and need no digests.
    """
    start = run.config.model.start
    learned = dict(read_learned(RunFolder(Path(start)))) if start else {}
    for name, own in own_pictures(run).items():
        learned[name] = torch.unique(torch.cat([learned[name], own]) if name in learned else own)
    return learned


def own_pictures(run: Assembly) -> Learned:
    """The pictures that a run itself trains on."""
    dataset, uses_unlabeled = run.dataset, run.state.algorithm.views.unlabeled
    if dataset.benchmark:
        return {}
    used = torch.cat([dataset.labeled, dataset.unlabeled]) if uses_unlabeled else dataset.labeled
    return {"x".join(map(str, dataset.images.shape)): keys_of(dataset.images)[used]}


def includes_all_pictures(run: Assembly, learned: Learned) -> bool:
    """Whether every picture of a run is among those that it began with."""
    parts = own_pictures(run).items()
    return all(
        name in learned and bool(torch.isin(own, learned[name]).all()) for name, own in parts
    )


def read_learned(folder: RunFolder) -> Learned:
    """What a run wrote down; nothing for a benchmark, or for a run of an early version."""
    if not folder.learned.exists():
        return {}
    return read_file(folder.learned, parse_learned, folder.repair)


def parse_learned(path: Path) -> Learned:
    """`ValueError` says what is wrong with the file."""
    require_tensors(path)
    learned = load_file(path)
    if len(learned) > MOST_SIZES:
        raise ValueError(f"pictures of {len(learned):,} sizes")
    for name, keys in learned.items():
        if not SHAPE.fullmatch(name) or keys.dtype != torch.int64 or keys.ndim != 1:
            raise ValueError("it does not hold digests of pictures")
        if math.prod(map(int, name.split("x"))) > LARGEST_PICTURE:
            raise ValueError(f"pictures of {name} are too large")
    return learned


def list_unknowns(run: Assembly) -> list[str]:
    """Notes on what is not known about the test set of a run that starts from another."""
    start = run.config.model.start
    if start is None or run.dataset.test is None:
        return []
    earlier = RunFolder(Path(start))
    if not earlier.config.is_file():  # deleted since; this run has copied its digests
        return []
    doubt = describe_unknown(earlier, read_config(earlier).data.name)
    return [doubt] if doubt else []


def describe_unknown(folder: RunFolder, data: str) -> str:
    """A note if a run saved no digests, as early versions did not; otherwise empty."""
    if folder.learned.exists() or find_benchmark(data):
        return ""
    return (
        f"{folder.path} did not record which pictures it was trained on; check that none of them "
        "is in the test set"
    )


def find_learned(learned: Learned, store: ImageStore) -> Tensor:
    """(N,) bool: which pictures of a store are among them; files are recognized at any size."""
    learned_from = torch.zeros(len(store), dtype=torch.bool)
    for name, keys in learned.items():
        channels, height, width = map(int, name.split("x"))
        if store.shape == (channels, height, width):
            learned_from |= torch.isin(keys_of(store), keys)
        elif store.paths:
            resized = FileStore(store.paths, (height, width), channels)
            learned_from |= torch.isin(keys_of(resized), keys)
    return learned_from


def find_learned_test_pictures(learned: Learned, dataset: SemiDataset) -> list[HealthFinding]:
    """A finding where the earlier run was trained on test pictures; this run never is."""
    tests = [store for store in (dataset.test, dataset.unknown_test) if store is not None]
    count = sum(int(find_learned(learned, store).sum()) for store in tests)
    if not count:
        return []
    finding = HealthFinding(
        kind=LEAKED,
        message=f"the run that this one starts from was trained on {count} of "
        f"{sum(map(len, tests))} test pictures: the test accuracy is too high",
        advice="test pictures that no run was trained on",
    )
    return [finding]


def keys_of(store: ImageStore) -> Tensor:
    """(N,) int64: half of each picture's digest is enough to tell millions apart."""
    halves = b"".join(digest[:8] for digest in compute_digests(store))
    return torch.from_numpy(np.frombuffer(halves, "<i8").astype(np.int64))
