"""The raw batch of a step, on the device; read ahead when the pictures do not live there."""

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
from fullmatch.data.stores.files import FileStore
from fullmatch.data.stores.image_store import ImageStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError

AHEAD = 4  # batches read in advance
RESIDENT = 0.5  # share of a GPU's free memory that pictures may take; a step needs the rest


class RawBatch(NamedTuple):
    """Images as stored, before augmentation."""

    labeled: Tensor  # (L, channels, H, W) uint8
    labels: Tensor
    labeled_index: Tensor
    unlabeled: Tensor  # (U, channels, H, W) uint8
    unlabeled_index: Tensor
    hidden_labels: Tensor


Arrival = tuple[RawBatch, torch.cuda.Event | None]  # a batch, and when it is on the device


class Feed(Protocol):
    """`seek` is called by the host before each step, `batch` inside the step."""

    notes: tuple[str, ...]
    waited: float  # seconds that steps waited for pictures, so far

    def seek(self, step: int) -> None: ...

    def batch(self) -> RawBatch: ...


class Half:
    """Either the labeled or the unlabeled images: where they live, and their order."""

    def __init__(self, dataset: SemiDataset, kept: Tensor, sampler: Sampler) -> None:
        self.sampler = sampler
        self.kept = kept.to(sampler.device)  # position among these -> position in the store
        self.labels = dataset.labels[kept].to(sampler.device)

    def draw(self) -> tuple[Tensor, Tensor, Tensor]:
        """Positions in the store, labels, and positions among these images."""
        index = self.sampler.positions()
        return self.kept[index], self.labels[index], index


class ResidentFeed:
    """All pictures live on the device: a batch is one gather, and the host sends nothing."""

    def __init__(self, store: TensorStore, labeled: Half, unlabeled: Half) -> None:
        self.store, self.labeled, self.unlabeled = store, labeled, unlabeled
        self.notes = sizes_said(labeled, unlabeled)
        self.waited = 0.0

    def seek(self, step: int) -> None:
        self.labeled.sampler.seek(step)
        self.unlabeled.sampler.seek(step)

    def batch(self) -> RawBatch:
        position, labels, labeled_index = self.labeled.draw()
        others, hidden_labels, index = self.unlabeled.draw()
        read = self.store.read
        return RawBatch(read(position), labels, labeled_index, read(others), index, hidden_labels)


class StreamingFeed:
    """Pictures are read and sent ahead by a background thread, while earlier steps run."""

    def __init__(
        self, store: ImageStore, labeled: Half, unlabeled: Half, device: torch.device
    ) -> None:
        self.store, self.labeled, self.unlabeled, self.device = store, labeled, unlabeled, device
        self.notes = sizes_said(labeled, unlabeled)
        self.waited = 0.0
        self.reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="feed")
        self.ahead: dict[int, Future[Arrival]] = {}
        self.current: RawBatch | None = None  # always the same memory, as a recorded step needs
        self.sending = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def read(self, step: int) -> Arrival:
        self.labeled.sampler.seek(step)
        self.unlabeled.sampler.seek(step)
        if self.sending is None:
            return self.raw(), None
        with torch.cuda.stream(self.sending):
            sent = (part.pin_memory().to(self.device, non_blocking=True) for part in self.raw())
            return RawBatch(*sent), self.sending.record_event()

    def raw(self) -> RawBatch:
        position, labels, labeled_index = self.labeled.draw()
        others, hidden_labels, index = self.unlabeled.draw()
        # One read for both halves, so that whoever decodes has enough to do at once.
        both = self.store.read(torch.cat((position, others)))
        here, there = both[: len(position)], both[len(position) :]
        return RawBatch(here, labels, labeled_index, there, index, hidden_labels)

    def seek(self, step: int) -> None:
        # One reader thread takes the steps in order, so that the samplers are never shared.
        self.ahead = {at: read for at, read in self.ahead.items() if step <= at < step + AHEAD}
        for at in range(step, step + AHEAD):
            if at not in self.ahead:
                self.ahead[at] = self.reader.submit(self.read, at)
        started = time.perf_counter()
        raw, sent = self.ahead.pop(step).result()
        self.waited += time.perf_counter() - started
        if sent is not None:
            sent.wait()  # the device waits, not the host
        if self.current is None:
            self.current = RawBatch(*(torch.empty_like(part) for part in raw))
        for place, part in zip(self.current, raw, strict=True):
            place.copy_(part)
            if sent is not None:
                part.record_stream(torch.cuda.current_stream(self.device))

    def batch(self) -> RawBatch:
        assert self.current is not None, "seek comes before batch"
        return self.current


def feed_of(
    dataset: SemiDataset, *, batch: int, ratio: int, seed: int, device: torch.device
) -> Feed:
    """A feed for this data set: resident when its pictures fit on the device, else streaming."""
    images = dataset.images
    if isinstance(images, FileStore) and forks(device):
        images = images.with_processes(decoders())
    resident = isinstance(images, TensorStore) and fits(images.images, device)
    home = device if resident else torch.device("cpu")

    processes = distributed.processes()
    if batch % processes or min(len(dataset.labeled), len(dataset.unlabeled)) < processes:
        raise UserError(
            f"{processes} processes cannot share {batch} labeled images a step evenly, or there "
            "are fewer images than processes; start another number, or give another training.batch"
        )

    def half(kept: Tensor, size: int, stream: int) -> Half:
        sampler = Sampler(
            len(kept),
            size,
            seed=seed,
            stream=stream,
            device=home,
            rank=distributed.rank(),
            world_size=processes,
        )
        return Half(dataset, kept, sampler)

    labeled = half(dataset.labeled, batch, 0)
    unlabeled = half(dataset.unlabeled, batch * ratio, 1)
    if resident and isinstance(images, TensorStore):
        return ResidentFeed(images.to(device), labeled, unlabeled)
    return StreamingFeed(images, labeled, unlabeled, device)


def decoders() -> int:
    """One process a core, of those that fall to each training process."""
    return max(1, min(16, len(os.sched_getaffinity(0)) // distributed.processes()))


def forks(device: torch.device) -> bool:
    """Whether files are decoded by processes: a GPU would wait for threads."""
    return device.type == "cuda" and sys.platform == "linux"


def fits(images: Tensor, device: torch.device) -> bool:
    """Whether pictures may live on the device beside a training step."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return images.nbytes <= RESIDENT * free


def sizes_said(labeled: Half, unlabeled: Half) -> tuple[str, ...]:
    """Sentences about batches that are smaller than asked for."""
    return tuple(
        f"{half.sampler.size} {name} images are fewer than a batch of "
        f"{half.sampler.asked}: the batch shrinks to {half.sampler.batch}"
        for name, half in (("labeled", labeled), ("unlabeled", unlabeled))
        if half.sampler.asked > half.sampler.batch
    )
