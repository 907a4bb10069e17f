"""Raw batches: the right images with the right labels, resident and streaming alike."""

import weakref
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fullmatch.core import Appearance
from fullmatch.data import FileStore, SemiDataset, TensorStore
from fullmatch.data.feed import Feed, RawBatch, ResidentFeed, StreamingFeed, feed_of, forks
from fullmatch.errors import UserError
from tests.data.conftest import Draw

CPU = torch.device("cpu")


class SlowStore:
    """Pictures that do not live in memory; each is filled with its own position."""

    shape = (1, 2, 2)

    def __init__(self, size: int) -> None:
        self.size = size
        self.reads = 0
        self.broken: int | None = None

    def __len__(self) -> int:
        return self.size

    def read(self, index: Tensor) -> Tensor:
        self.reads += 1
        if self.broken is not None and self.broken in index.tolist():
            raise UserError(f"cannot read picture {self.broken}")
        return index.to(torch.uint8)[:, None, None, None].expand(-1, 1, 2, 2).contiguous()


def dataset(size: int = 30, *, resident: bool = True) -> SemiDataset:
    """Every third image is labeled with its position modulo 4; the rest have no known label."""
    slow = SlowStore(size)
    labels = torch.arange(size) % 4
    labels[torch.arange(size) % 3 != 0] = -1
    return SemiDataset(
        name="made up",
        images=TensorStore(slow.read(torch.arange(size))) if resident else slow,
        labels=labels,
        classes=("a", "b", "c", "d"),
        appearance=Appearance(mean=(0.5,), std=(0.5,)),
        labeled=(labels >= 0).nonzero().flatten(),
        unlabeled=torch.arange(size),
    )


def feed(data: SemiDataset, batch: int = 4, ratio: int = 3, seed: int = 0) -> Feed:
    return feed_of(data, batch=batch, ratio=ratio, seed=seed, device=CPU)


def at(one: Feed, step: int) -> RawBatch:
    one.seek(step)
    return RawBatch(*(part.clone() for part in one.batch()))


@pytest.mark.parametrize("resident", [True, False])
def test_images_labels_and_positions_belong_together(resident: bool) -> None:
    data = dataset(resident=resident)
    one = feed(data)
    assert isinstance(one, ResidentFeed if resident else StreamingFeed)
    for step in range(20):
        raw = at(one, step)
        place = raw.labeled[:, 0, 0, 0].long()
        assert torch.equal(place, data.labeled[raw.labeled_index])
        assert torch.equal(raw.labels, place % 4)
        place = raw.unlabeled[:, 0, 0, 0].long()
        assert torch.equal(place, raw.unlabeled_index)
        assert torch.equal(raw.hidden_labels, data.labels[place])
        assert raw.labeled.dtype == torch.uint8 and len(place) == 12


def test_streaming_gives_the_same_batches() -> None:
    resident, streaming = feed(dataset()), feed(dataset(resident=False))
    for step in (0, 1, 2, 9, 3, 100, 101):
        for one, other in zip(at(resident, step), at(streaming, step), strict=True):
            assert torch.equal(one, other)


def test_streaming_reads_ahead_and_only_once() -> None:
    data = dataset(resident=False)
    one = feed(data)
    for step in range(10):
        at(one, step)
    assert isinstance(one, StreamingFeed) and isinstance(data.images, SlowStore)
    one.reader.shutdown()
    assert data.images.reads == 10 + 3  # both halves at once


def test_processes_give_the_same_batches_and_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, draw_picture: Draw
) -> None:
    paths = [draw_picture(tmp_path / f"{i}.png", (i, 2 * i, 3 * i)) for i in range(30)]
    data = replace(dataset(), images=FileStore(paths, (8, 8)))
    threads = feed(data)
    monkeypatch.setattr("fullmatch.data.feed.forks", lambda device: True)
    processes = feed(data)
    assert isinstance(processes, StreamingFeed) and isinstance(processes.store, FileStore)
    assert isinstance(data.images, FileStore) and data.images.pool is None
    assert processes.store.pool is not None
    for step in (0, 1, 2, 9, 3, 100, 101):
        for one, other in zip(at(threads, step), at(processes, step), strict=True):
            assert torch.equal(one, other)
    pids, dropped = processes.store.pool.pids, weakref.ref(processes.store.pool)
    processes.reader.shutdown()
    del processes, one, other
    assert dropped() is None and not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_only_a_gpu_has_pictures_decoded_by_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert forks(torch.device("cuda")) and not forks(CPU)
    monkeypatch.setattr("sys.platform", "darwin")
    assert not forks(torch.device("cuda"))


def test_streaming_writes_in_place() -> None:
    one = feed(dataset(resident=False))
    one.seek(0)
    places = [part.data_ptr() for part in one.batch()]
    one.seek(1)
    assert [part.data_ptr() for part in one.batch()] == places


def test_error_of_the_reader_reaches_the_caller() -> None:
    data = dataset(resident=False)
    assert isinstance(data.images, SlowStore)
    data.images.broken = 17
    one = feed(data)
    with pytest.raises(UserError, match="cannot read picture 17"):
        for step in range(10):
            one.seek(step)


def test_seed_decides_the_order_and_halves_differ() -> None:
    first = at(feed(dataset()), 0)
    assert torch.equal(first.unlabeled_index, at(feed(dataset()), 0).unlabeled_index)
    assert not torch.equal(first.unlabeled_index, at(feed(dataset(), seed=1), 0).unlabeled_index)
    everything = replace(dataset(), labeled=torch.arange(30))
    same = at(feed(everything, batch=12, ratio=1), 0)
    assert not torch.equal(same.labeled_index, same.unlabeled_index)


def test_a_small_set_shrinks_the_batch_and_says_so() -> None:
    one = feed(dataset(), batch=16, ratio=2)
    raw = at(one, 0)
    assert (len(raw.labels), len(raw.unlabeled_index)) == (10, 30)
    assert one.notes == (
        "10 labeled images are fewer than a batch of 16: the batch shrinks to 10",
        "30 unlabeled images are fewer than a batch of 32: the batch shrinks to 30",
    )
    assert feed(dataset()).notes == ()
