"""The raw batch of each step, on the device; read ahead if the images are not in its memory."""

import math
import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from fullmatch import distributed
from fullmatch.data.dataset import SemiDataset
from fullmatch.data.sampler import Sampler
from fullmatch.data.stores.encoded import EncodedStore
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError

READ_AHEAD = 4  # batches
RESIDENT_SHARE = 0.5  # of a GPU's free memory that images may take; a step needs the rest
MAX_DECODERS = 16  # processes


class RawBatch(NamedTuple):
    """Images as stored, before augmentation."""

    labeled: Tensor  # (L, channels, H, W) uint8
    labels: Tensor
    labeled_index: Tensor
    unlabeled: Tensor  # (U, channels, H, W) uint8
    unlabeled_index: Tensor
    hidden_labels: Tensor


Transfer = tuple[RawBatch, torch.cuda.Event | None]  # a batch, and the end of its copy to a GPU


class Feed(Protocol):
    """`seek` is called by the host before each step, `batch` inside the step."""

    notes: tuple[str, ...]
    wait_seconds: float  # that steps have waited for images so far

    def seek(self, step: int) -> None: ...

    def batch(self) -> RawBatch: ...


class SampledSubset:
    """The labeled or the unlabeled images, with their labels and their order."""

    def __init__(self, dataset: SemiDataset, positions: Tensor, sampler: Sampler) -> None:
        self.sampler = sampler
        self.positions = positions.to(sampler.device)  # in the store
        self.labels = dataset.labels[positions].to(sampler.device)

    def draw(self) -> tuple[Tensor, Tensor, Tensor]:
        """Positions in the store, labels, and positions in this subset, of the current step."""
        index = self.sampler.positions()
        return self.positions[index], self.labels[index], index


class ResidentFeed:
    """All images are on the device: a batch is one gather, and the host sends nothing."""

    def __init__(
        self, store: TensorStore, labeled: SampledSubset, unlabeled: SampledSubset
    ) -> None:
        self.store, self.labeled, self.unlabeled = store, labeled, unlabeled
        self.notes = batch_size_notes(labeled, unlabeled)
        self.wait_seconds = 0.0

    def seek(self, step: int) -> None:
        self.labeled.sampler.seek(step)
        self.unlabeled.sampler.seek(step)

    def batch(self) -> RawBatch:
        labeled, labels, labeled_index = self.labeled.draw()
        unlabeled, hidden_labels, index = self.unlabeled.draw()
        read = self.store.read
        return RawBatch(read(labeled), labels, labeled_index, read(unlabeled), index, hidden_labels)


class StreamingFeed:
    """A background thread reads and copies the next batches while earlier steps run."""

    def __init__(
        self,
        store: ImageStore,
        labeled: SampledSubset,
        unlabeled: SampledSubset,
        device: torch.device,
    ) -> None:
        self.store, self.labeled, self.unlabeled, self.device = store, labeled, unlabeled, device
        self.notes = batch_size_notes(labeled, unlabeled)
        self.wait_seconds = 0.0
        self.reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="feed")
        self.pending: dict[int, Future[Transfer]] = {}  # by step
        self.current: RawBatch | None = None  # always the same memory, as a recorded step needs
        self.copy_stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def read(self, step: int) -> Transfer:
        """Read the batch of a step and start its copy to the device."""
        self.labeled.sampler.seek(step)
        self.unlabeled.sampler.seek(step)
        if self.copy_stream is None:
            return self.read_raw(), None
        with torch.cuda.stream(self.copy_stream):
            parts = self.read_raw()
            copies = (part.pin_memory().to(self.device, non_blocking=True) for part in parts)
            return RawBatch(*copies), self.copy_stream.record_event()

    def read_raw(self) -> RawBatch:
        labeled, labels, labeled_index = self.labeled.draw()
        unlabeled, hidden_labels, index = self.unlabeled.draw()
        # One read for both subsets, so that all decoders are busy.
        images = self.store.read(torch.cat((labeled, unlabeled)))
        labeled_images, unlabeled_images = images[: len(labeled)], images[len(labeled) :]
        return RawBatch(
            labeled_images, labels, labeled_index, unlabeled_images, index, hidden_labels
        )

    def seek(self, step: int) -> None:
        # A single reader thread processes the steps in order, so the samplers are never shared.
        wanted = range(step, step + READ_AHEAD)
        self.pending = {key: read for key, read in self.pending.items() if key in wanted}
        for key in wanted:
            if key not in self.pending:
                self.pending[key] = self.reader.submit(self.read, key)
        started = time.perf_counter()
        raw, copied = self.pending.pop(step).result()
        self.wait_seconds += time.perf_counter() - started
        if copied is not None:
            copied.wait()  # the device waits, not the host
        if self.current is None:
            self.current = RawBatch(*(torch.empty_like(part) for part in raw))
        for place, part in zip(self.current, raw, strict=True):
            place.copy_(part)
            if copied is not None:
                part.record_stream(torch.cuda.current_stream(self.device))

    def batch(self) -> RawBatch:
        assert self.current is not None, "call seek before batch"
        return self.current


def build_feed(
    dataset: SemiDataset,
    *,
    labeled_batch: int,
    unlabeled_batch: int,
    seed: int,
    device: torch.device,
    repeat_labels: bool = False,
) -> Feed:
    """Build a resident feed if the images fit on the device, else a streaming feed.

    `repeat_labels`: a batch of more labeled images than there are has some of them twice.
    """
    images = dataset.images
    if isinstance(images, EncodedStore) and decodes_in_processes(device):
        images = images.with_processes(decoder_count())
    resident = isinstance(images, TensorStore) and fits_on_device(images.images, device)
    home = device if resident else torch.device("cpu")

    def sampled(positions: Tensor, size: int, stream: int) -> SampledSubset:
        sampler = Sampler(
            len(positions),
            size,
            seed=seed,
            stream=stream,
            device=home,
            rank=distributed.rank(),
            world_size=distributed.world_size(),
            repeat=repeat_labels and stream == 0,
        )
        return SampledSubset(dataset, positions, sampler)

    labeled = sampled(dataset.labeled, labeled_batch, 0)
    unlabeled = sampled(dataset.unlabeled, unlabeled_batch, 1)
    check_shares(labeled.sampler.batch, unlabeled.sampler.batch)
    if resident and isinstance(images, TensorStore):
        return ResidentFeed(images.to(device), labeled, unlabeled)
    return StreamingFeed(images, labeled, unlabeled, device)


def check_shares(labeled: int, unlabeled: int) -> None:
    """`UserError` where the processes cannot share the images of a step evenly."""
    processes, common = distributed.world_size(), math.gcd(labeled, unlabeled)
    if common % processes:
        possible = [count for count in range(1, common + 1) if common % count == 0]
        raise UserError(
            f"{processes} processes cannot share {labeled} labeled and {unlabeled} unlabeled "
            f"images per step evenly; {join_or(possible)} can: start as many, or change "
            "training.batch (a set smaller than its batch needs training.repeat_labels=true)"
        )


def join_or(numbers: list[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} or {last}" if others else last


def decoder_count() -> int:
    """Decoder processes per training process: one per core."""
    cores = len(os.sched_getaffinity(0)) // distributed.world_size()
    return max(1, min(MAX_DECODERS, cores))


def decodes_in_processes(device: torch.device) -> bool:
    """Whether processes decode files: threads are too slow for a GPU."""
    return device.type == "cuda" and sys.platform == "linux"


def fits_on_device(images: Tensor, device: torch.device) -> bool:
    """Whether images fit into the memory of the device next to a training step."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return images.nbytes <= RESIDENT_SHARE * free


def batch_size_notes(labeled: SampledSubset, unlabeled: SampledSubset) -> tuple[str, ...]:
    """Notes about batches that are smaller than requested."""
    return tuple(
        f"{subset.sampler.size} {name} images are fewer than a batch of "
        f"{subset.sampler.requested_batch}: the batch shrinks to {subset.sampler.batch}"
        for name, subset in (("labeled", labeled), ("unlabeled", unlabeled))
        if subset.sampler.requested_batch > subset.sampler.batch
    )
