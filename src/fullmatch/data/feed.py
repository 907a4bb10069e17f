"""The raw batch of a step, on the device; read ahead when the pictures do not live there."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from fullmatch import distributed
from fullmatch.data.dataset import SemiDataset
from fullmatch.data.sampler import Sampler
from fullmatch.data.stores import ImageStore, TensorStore

AHEAD = 4  # batches read in advance


class RawBatch(NamedTuple):
    """Images as stored, before augmentation."""

    labeled: Tensor  # (L, channels, H, W) uint8
    labels: Tensor
    labeled_index: Tensor
    unlabeled: Tensor  # (U, channels, H, W) uint8
    unlabeled_index: Tensor
    hidden_labels: Tensor


class Feed(Protocol):
    """`seek` is called by the host before each step, `batch` inside the step."""

    notes: tuple[str, ...]

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

    def seek(self, step: int) -> None:
        self.labeled.sampler.seek(step)
        self.unlabeled.sampler.seek(step)

    def batch(self) -> RawBatch:
        return raw_batch(self.store, self.labeled, self.unlabeled)


class StreamingFeed:
    """Pictures are read by a background thread and copied into place before the step."""

    def __init__(
        self, store: ImageStore, labeled: Half, unlabeled: Half, device: torch.device
    ) -> None:
        self.store, self.labeled, self.unlabeled, self.device = store, labeled, unlabeled, device
        self.notes = sizes_said(labeled, unlabeled)
        self.reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="feed")
        self.ahead: dict[int, Future[RawBatch]] = {}
        self.current: RawBatch | None = None

    def read(self, step: int) -> RawBatch:
        self.labeled.sampler.seek(step)
        self.unlabeled.sampler.seek(step)
        raw = raw_batch(self.store, self.labeled, self.unlabeled)
        pinned = self.device.type == "cuda"
        return RawBatch(*(part.pin_memory() for part in raw)) if pinned else raw

    def seek(self, step: int) -> None:
        # One reader thread takes the steps in order, so that the samplers are never shared.
        self.ahead = {at: read for at, read in self.ahead.items() if step <= at < step + AHEAD}
        for at in range(step, step + AHEAD):
            if at not in self.ahead:
                self.ahead[at] = self.reader.submit(self.read, at)
        raw = self.ahead.pop(step).result()
        if self.current is None:
            self.current = RawBatch(*(part.to(self.device, copy=True) for part in raw))
        for place, part in zip(self.current, raw, strict=True):
            place.copy_(part, non_blocking=True)

    def batch(self) -> RawBatch:
        assert self.current is not None, "seek comes before batch"
        return self.current


def raw_batch(store: ImageStore, labeled: Half, unlabeled: Half) -> RawBatch:
    position, labels, labeled_index = labeled.draw()
    unlabeled_position, hidden_labels, index = unlabeled.draw()
    return RawBatch(
        store.read(position),
        labels,
        labeled_index,
        store.read(unlabeled_position),
        index,
        hidden_labels,
    )


def feed_of(
    dataset: SemiDataset, *, batch: int, ratio: int, seed: int, device: torch.device
) -> Feed:
    """A feed for this data set: resident when its pictures are tensors, else streaming."""
    resident = isinstance(dataset.images, TensorStore)
    home = device if resident else torch.device("cpu")

    def half(kept: Tensor, size: int, stream: int) -> Half:
        sampler = Sampler(
            len(kept),
            size,
            seed=seed,
            stream=stream,
            device=home,
            rank=distributed.rank(),
            world_size=distributed.world_size(),
        )
        return Half(dataset, kept, sampler)

    labeled = half(dataset.labeled, batch, 0)
    unlabeled = half(dataset.unlabeled, batch * ratio, 1)
    if isinstance(dataset.images, TensorStore):
        return ResidentFeed(dataset.images.to(device), labeled, unlabeled)
    return StreamingFeed(dataset.images, labeled, unlabeled, device)


def sizes_said(labeled: Half, unlabeled: Half) -> tuple[str, ...]:
    """Sentences about batches that are smaller than asked for."""
    return tuple(
        f"{half.sampler.size} {name} images are fewer than a batch of "
        f"{half.sampler.asked}: the batch shrinks to {half.sampler.batch}"
        for name, half in (("labeled", labeled), ("unlabeled", unlabeled))
        if half.sampler.asked > half.sampler.batch
    )
