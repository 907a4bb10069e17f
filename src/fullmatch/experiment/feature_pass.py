"""The feature pass: every picture once through a frozen body, under a few views.

Rows go to a file as they are made, so memory does not grow with the pictures, and a pass that was
interrupted continues where it stopped.
"""

import hashlib
import mmap
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fullmatch.augment.views import PUBLISHED, Augmenter
from fullmatch.config import AugmentConfig
from fullmatch.data import ImageStore
from fullmatch.data.quality.fingerprints import compute_digests
from fullmatch.data.stores.image_store import evenly_spaced
from fullmatch.experiment.frozen_model import FrozenModel
from fullmatch.experiment.probe_heads import LinearHead
from fullmatch.files.reading import MEBIBYTE, parse_json, read_bounded, require_regular
from fullmatch.models.frozen import Embedding, fold_batch_norms
from fullmatch.storage.json_files import write_json
from fullmatch.training.randomness import preserve_rng, seed_step

RELEASED = 100  # batches after which memory of written rows is released
BATCH = 8  # larger ones leave the caches of a CPU
GPU_BATCH = 256
CHECKED = 1000  # rows read at a time
FITTED = 10_000  # pictures that the embedding is fitted on, at most
Progress = Callable[[int, int], object]  # pictures done, and in all


@dataclass(frozen=True)
class FrozenFeatures:
    """Embeddings of all pictures of a run, by position, and how to embed others."""

    model: FrozenModel
    embedding: Embedding
    training: Tensor  # (N, V, D): plain, each size, then weak and strong crops by turns
    test: Tensor | None  # (T, D), plain
    weak: tuple[int, ...]  # which views serve as weak ones
    strong: tuple[int, ...]
    # Heads that were fitted on these rows, by what they were fitted to.
    heads: dict[str, LinearHead] = field(default_factory=dict)

    def with_test(self, positions: Tensor) -> "FrozenFeatures":
        """The same for a fold of cross-validation, whose test set is part of the training set."""
        return replace(self, test=self.training[positions, 0])

    @property
    def plain(self) -> Tensor:
        return self.training[:, 0]


class FeaturePass:
    """Descriptors of a store's pictures under each view, in a file that outlives interrupts."""

    def __init__(
        self,
        model: FrozenModel,
        folder: Path | None,
        device: torch.device,
        views: AugmentConfig = PUBLISHED,
    ) -> None:
        self.model, self.folder, self.device = model.to(device), folder, device
        self.augment = Augmenter(model.appearance, settings=views).to(device)
        self.views = "" if views == PUBLISHED else f" {views}"  # as part of a file's name
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
        details = f"{crops} {seed}{self.views if crops else ''}"
        rows, done = self.open(store, shape, details)
        for start in range(done, len(store), self.batch):
            index = torch.arange(start, min(start + self.batch, len(store)))
            with preserve_rng(self.device):  # the same crops wherever a pass was interrupted
                seed_step(seed, start, 0, self.device)
                described = self.describe_batch(store.read(index), crops)
            rows[start : start + len(index)] = described
            if start % (RELEASED * self.batch) == 0:
                release_memory(rows)
            self.note_done(store, shape, details, start + len(index))
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
        return pass_key(self.model.identity, store, details)

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
                write_json(path.with_suffix(".json"), {"done": done, "shape": shape})
            except OSError as error:
                self.stop_keeping(error)

    def read_done(self, path: Path, shape: tuple[int, ...]) -> int:
        """How many rows an earlier pass has filled; 0 where its file is damaged or does not fit."""
        kept = None if path.is_symlink() else read_kept(path)  # a link leads to another file
        if kept is None or kept.rows.shape != shape or not 0 < kept.done <= shape[0]:
            return 0
        finite = all(
            np.isfinite(kept.rows[start : min(start + CHECKED, kept.done)]).all()
            for start in range(0, kept.done, CHECKED)
        )
        return kept.done if finite else 0


class KeptRows(NamedTuple):
    """Rows in a file, and how many of them are filled."""

    rows: "np.ndarray[tuple[int, ...], np.dtype[np.float16]]"
    done: int


def read_kept(path: Path) -> KeptRows | None:
    """What a pass has kept in a file; None where it is missing or damaged."""
    try:
        done = parse_json(read_bounded(path.with_suffix(".json"), MEBIBYTE))["done"]
        require_regular(path)
        rows = np.lib.format.open_memmap(path, mode="r")  # refuses a file that is too short
    except Exception:  # NumPy parses its header as Python code, which raises anything
        return None
    usable = type(done) is int and rows.ndim == 3 and rows.dtype == np.float16
    return KeptRows(rows, done) if usable else None


def pass_key(identity: str, store: ImageStore, details: str) -> str:
    """The name of a pass's file, which changes with the network, the pictures and the views."""
    digest = hashlib.sha256(f"{identity} {store.shape} {details}".encode())
    for picture in compute_digests(store):
        digest.update(picture)
    return digest.hexdigest()[:24]


def read_descriptors(
    folder: Path, identity: str, store: ImageStore, crops: int, seed: int
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float16]] | None":
    """(N, D) descriptors that a complete pass has kept in a folder; None if they are not there."""
    path = folder / f"{pass_key(identity, store, f'{crops} {seed}')}.npy"
    kept = read_kept(path)
    if kept is None or not kept.done == len(store) == len(kept.rows) or not kept.rows.shape[1]:
        return None
    return kept.rows[:, 0] if np.isfinite(kept.rows[:, 0]).all() else None


def create_rows(
    path: Path, shape: tuple[int, ...]
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float16]]":
    """Empty rows in a file; a full disk is an `OSError` now, not a crash when rows are written."""
    try:
        path.unlink(missing_ok=True)  # a link would lead to another file
        rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=shape)
        if sys.platform == "linux":
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return rows


def release_memory(rows: "np.ndarray[tuple[int, ...], np.dtype[np.float16]]") -> None:
    """Let go of pages of a file that are in memory; they are read again where they are needed."""
    if isinstance(rows, np.memmap) and hasattr(mmap, "MADV_DONTNEED"):
        rows.flush()
        rows._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def embed_rows(
    embedding: Embedding, rows: "np.ndarray[tuple[int, ...], np.dtype[np.float16]]"
) -> Tensor:
    """(N, V, D) descriptors -> (N, V, d) embeddings, a thousand pictures at a time."""
    embedded = torch.empty(*rows.shape[:2], sum(embedding.dimensions), dtype=torch.float16)
    for start in range(0, len(rows), 1000):
        part = torch.from_numpy(np.asarray(rows[start : start + 1000], np.float32))
        flat = embedding(part.flatten(0, 1))
        embedded[start : start + 1000] = flat.view(*part.shape[:2], -1)
        release_memory(rows)
    return embedded


@dataclass(frozen=True)
class PassOptions:
    """Where the feature pass keeps its rows, what it computes, and who watches it."""

    folder: Path | None = None
    crops: int = 1  # weak and strong crops of each training picture
    seed: int = 0
    views: AugmentConfig = PUBLISHED
    fitted: int = FITTED
    begin: Callable[[], None] = lambda: None  # called before the work starts
    progress: Progress = lambda done, total: None


def compute_features(
    model: FrozenModel,
    images: ImageStore,
    test: ImageStore | None,
    device: torch.device,
    options: PassOptions,
) -> tuple[FrozenFeatures, list[str]]:
    """Embeddings of all pictures, and notes for the user."""
    options.begin()
    work = FeaturePass(model, options.folder, device, options.views)
    total = len(images) + (0 if test is None else len(test))

    def report_training(done: int, _: int) -> object:
        return options.progress(done, total)

    def report_test(done: int, _: int) -> object:
        return options.progress(len(images) + done, total)

    rows = work.describe(images, options.crops, options.seed, report_training)
    sample = rows[evenly_spaced(len(images), options.fitted).numpy(), 0]
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
