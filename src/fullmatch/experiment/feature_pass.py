"""The feature pass: every picture once through a frozen body, under a few views.

Rows go to a file as they are made, so memory does not grow with the pictures, and a pass that was
interrupted continues where it stopped.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from fullmatch.augment.views import Augmenter
from fullmatch.core import Appearance
from fullmatch.data import ImageStore
from fullmatch.data.quality.fingerprints import compute_digests
from fullmatch.data.stores.image_store import evenly_spaced
from fullmatch.errors import UserError
from fullmatch.models import Backbone, build_network
from fullmatch.models.frozen import Embedding, FrozenBody, fold_batch_norms
from fullmatch.models.pretrained import (
    Origin,
    WeightsFile,
    copy_packaged,
    describe_weights,
    find_weights,
    read_packaged,
)
from fullmatch.models.weights import load_weights, use_published_normalization
from fullmatch.training.randomness import preserve_rng, seed_step

BATCH = 8  # larger ones leave the caches of a CPU
GPU_BATCH = 256
FITTED = 10_000  # pictures that the embedding is fitted on, at most
SMALL_SIDE = 160  # of pictures that are enlarged rather than shrunk
SMALL_SIZES, LARGE_SIZES = (96, 160, 224), (160, 224, 288)
Progress = Callable[[int, int], object]  # pictures done, and in all


@dataclass(frozen=True)
class FrozenModel:
    """A pretrained network whose body stays as it is."""

    body: FrozenBody
    appearance: Appearance  # how its pictures are normalized
    widths: tuple[int, ...]  # of the parts of a descriptor
    identity: str  # changes with the weights and the picture sizes
    note: str  # which weights these are

    def to(self, device: torch.device) -> "FrozenModel":
        return replace(self, body=self.body.to(device))


@dataclass(frozen=True)
class FrozenFeatures:
    """Embeddings of all pictures of a run, by position, and how to embed others."""

    model: FrozenModel
    embedding: Embedding
    training: Tensor  # (N, V, D): plain, each size, then weak and strong crops by turns
    test: Tensor | None  # (T, D), plain
    weak: tuple[int, ...]  # which views serve as weak ones
    strong: tuple[int, ...]

    def with_test(self, positions: Tensor) -> "FrozenFeatures":
        """The same for a fold of cross-validation, whose test set is part of the training set."""
        return replace(self, test=self.training[positions, 0])

    @property
    def plain(self) -> Tensor:
        return self.training[:, 0]


def choose_sizes(side: int) -> tuple[int, ...]:
    """Picture sizes that a body looks at, for pictures of this side."""
    return SMALL_SIZES if side <= SMALL_SIDE else LARGE_SIZES


def load_frozen_model(
    name: str, appearance: Appearance, side: int, weights: Path | None = None
) -> FrozenModel:
    """A network with published weights, from a file, a cache or an installed package."""
    network = build_network(name, 2, (3, 224, 224))
    if not isinstance(network, Backbone):
        raise UserError(
            f"model {name!r} has no pretrained weights; choose one of: fullmatch list models"
        )
    classifier, note, identity = load_body(name, network, weights)
    sizes = choose_sizes(side)
    body = FrozenBody(network.body, classifier, sizes)
    width = network.head.in_features
    return FrozenModel(
        body=body,
        appearance=use_published_normalization(appearance, network),
        widths=(width,) if classifier is None else (width, classifier.out_features),
        identity=f"{identity} {'x'.join(map(str, sizes))}",
        note=note,
    )


def load_body(name: str, network: Backbone, path: Path | None) -> tuple[nn.Linear | None, str, str]:
    """Fill the body; returns its classifier, a sentence, and what identifies the weights."""
    found = None if path is not None else find_weights(name)
    if path is None and found is None:
        raise UserError(
            f"no pretrained weights of {name} on this machine; pass a file: --weights FILE, "
            "or install one that carries its weights: fullmatch list models"
        )
    if found is not None and found.origin is Origin.PACKAGE:
        copy_packaged(found, network.body)
        return packaged_classifier(found), describe_weights(found), f"{name} {found.package}"
    path = found.path if found is not None else path
    assert path is not None
    note = load_weights(path, network, name, ())
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return None, note, f"{name} {digest}"


def packaged_classifier(weights: WeightsFile) -> nn.Linear:
    *_, weight, bias = read_packaged(weights)
    classifier = nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        classifier.weight.copy_(weight)
        classifier.bias.copy_(bias)
    return classifier


class FeaturePass:
    """Descriptors of a store's pictures under each view, in a file that outlives interrupts."""

    def __init__(self, model: FrozenModel, folder: Path | None, device: torch.device) -> None:
        self.model, self.folder, self.device = model.to(device), folder, device
        self.augment = Augmenter(model.appearance).to(device)
        channels = len(model.appearance.mean)
        fast = device.type == "cpu"
        self.body = fold_batch_norms(model.body, (channels, 64, 64)) if fast else model.body
        self.batch = BATCH if fast else GPU_BATCH
        self.notes: list[str] = []

    def describe(
        self, store: ImageStore, crops: int, seed: int, progress: Progress
    ) -> "np.ndarray[tuple[int, ...], np.dtype[np.float16]]":
        """(N, V, D) descriptors: plain, each size, then `crops` weak and strong ones by turns."""
        views = 1 + len(self.body.sizes) + 2 * crops
        shape = (len(store), views, sum(self.model.widths))
        rows, done = self.open(store, shape, f"{crops} {seed}")
        for start in range(done, len(store), self.batch):
            index = torch.arange(start, min(start + self.batch, len(store)))
            with preserve_rng(self.device):  # the same crops wherever a pass was interrupted
                seed_step(seed, start, 0, self.device)
                described = self.describe_batch(store.read(index), crops)
            rows[start : start + len(index)] = described
            self.note_done(store, shape, f"{crops} {seed}", start + len(index))
            progress(start + len(index), len(store))
        return rows

    @torch.no_grad()
    def describe_batch(
        self, images: Tensor, crops: int
    ) -> "np.ndarray[tuple[int, ...], np.dtype[np.float16]]":
        images = images.to(self.device)
        plain = self.prepare(self.augment(images, "plain"))
        by_size = [self.body.describe(plain, size) for size in self.body.sizes]
        middle = self.body.sizes[len(self.body.sizes) // 2]
        views = [torch.stack(by_size).mean(dim=0), *by_size]
        for _ in range(crops):
            for name in ("weak", "strong"):
                view = self.prepare(self.augment(images, name))
                views.append(self.body.describe(view, middle))
        return torch.stack(views, dim=1).half().cpu().numpy()

    def prepare(self, view: Tensor) -> Tensor:
        return view.contiguous(memory_format=torch.channels_last)

    def key(self, store: ImageStore, details: str) -> str:
        digest = hashlib.sha256(f"{self.model.identity} {store.shape} {details}".encode())
        for picture in compute_digests(store):
            digest.update(picture)
        return digest.hexdigest()[:24]

    def open(
        self, store: ImageStore, shape: tuple[int, ...], details: str
    ) -> "tuple[np.ndarray[tuple[int, ...], np.dtype[np.float16]], int]":
        """Rows to fill, and how many of them an earlier pass has filled."""
        if self.folder is None:
            return np.zeros(shape, np.float16), 0
        path = self.folder / f"{self.key(store, details)}.npy"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            done = self.read_done(path, shape)
            if done:
                return np.lib.format.open_memmap(path, mode="r+"), done
            path.with_suffix(".json").unlink(missing_ok=True)
            return create_rows(path, shape), 0
        except OSError as error:
            self.stop_keeping(error)
            return np.zeros(shape, np.float16), 0

    def stop_keeping(self, error: OSError) -> None:
        reason = error.strerror or error
        self.notes.append(f"features are not kept on disk ({reason}): continuing without")
        self.folder = None

    def note_done(self, store: ImageStore, shape: tuple[int, ...], details: str, done: int) -> None:
        if self.folder is not None and (done == shape[0] or done % (25 * self.batch) == 0):
            path = self.folder / f"{self.key(store, details)}.npy"
            try:
                path.with_suffix(".json").write_text(json.dumps({"done": done, "shape": shape}))
            except OSError as error:
                self.stop_keeping(error)

    def read_done(self, path: Path, shape: tuple[int, ...]) -> int:
        """How many rows an earlier pass has filled; 0 where its file is damaged or does not fit."""
        try:
            done = int(json.loads(path.with_suffix(".json").read_text())["done"])
            rows = np.lib.format.open_memmap(path, mode="r")  # refuses a file that is too short
        except (OSError, ValueError, KeyError, TypeError):
            return 0
        fits = rows.shape == shape and rows.dtype == np.float16 and 0 < done <= len(rows)
        return done if fits else 0


def create_rows(
    path: Path, shape: tuple[int, ...]
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float16]]":
    """Empty rows in a file; a full disk is an `OSError` now, not a crash when rows are written."""
    try:
        rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=shape)
        if sys.platform == "linux":
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return rows


def embed_rows(
    embedding: Embedding, rows: "np.ndarray[tuple[int, ...], np.dtype[np.float16]]"
) -> Tensor:
    """(N, V, D) descriptors -> (N, V, d) embeddings, a thousand pictures at a time."""
    parts: list[Tensor] = []
    for start in range(0, len(rows), 1000):
        part = torch.from_numpy(np.asarray(rows[start : start + 1000], np.float32))
        flat = embedding(part.flatten(0, 1))
        parts.append(flat.view(*part.shape[:2], -1))
    return torch.cat(parts)


@dataclass(frozen=True)
class PassOptions:
    """Where the feature pass keeps its rows, and who watches it."""

    folder: Path | None = None
    crops: int = 1  # weak and strong crops of each training picture
    seed: int = 0
    progress: Progress = lambda done, total: None


def compute_features(
    model: FrozenModel,
    images: ImageStore,
    test: ImageStore | None,
    device: torch.device,
    options: PassOptions,
) -> tuple[FrozenFeatures, list[str]]:
    """Embeddings of all pictures, and notes for the user."""
    work = FeaturePass(model, options.folder, device)
    total = len(images) + (0 if test is None else len(test))

    def report_training(done: int, _: int) -> object:
        return options.progress(done, total)

    def report_test(done: int, _: int) -> object:
        return options.progress(len(images) + done, total)

    rows = work.describe(images, options.crops, options.seed, report_training)
    sample = rows[evenly_spaced(len(images), FITTED).numpy(), 0]
    embedding = Embedding.fit(torch.from_numpy(np.asarray(sample, np.float32)), model.widths)
    tested = None
    if test is not None:
        described = work.describe(test, 0, options.seed, report_test)
        tested = embed_rows(embedding, described[:, :1])[:, 0]
    sizes = len(model.body.sizes)
    crops = range(1 + sizes, 1 + sizes + 2 * options.crops)
    features = FrozenFeatures(
        model=model,
        embedding=embedding,
        training=embed_rows(embedding, rows),
        test=tested,
        weak=tuple(range(1 + sizes)),
        strong=(*range(1, 1 + sizes), *crops) or (0,),
    )
    return features, work.notes
