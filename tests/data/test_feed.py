"""Raw batches have the right images and labels, resident and streaming."""

import weakref
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fullmatch.core import Appearance
from fullmatch.data import FileStore, SemiDataset, TensorStore
from fullmatch.data.feed import (
    Feed,
    RawBatch,
    ResidentFeed,
    StreamingFeed,
    build_feed,
    decodes_in_processes,
)
from fullmatch.errors import UserError
from tests.data.conftest import Draw

CPU = torch.device("cpu")


class SlowStore:
    """Images outside of memory; each is filled with its own position."""

    shape = (1, 2, 2)
    paths: tuple[str, ...] = ()

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


def make_dataset(size: int = 30, *, resident: bool = True) -> SemiDataset:
    """Every third image is labeled with its position modulo 4; the others are unlabeled."""
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


def make_feed(data: SemiDataset, batch: int = 4, ratio: int = 3, seed: int = 0) -> Feed:
    return build_feed(
        data, labeled_batch=batch, unlabeled_batch=batch * ratio, seed=seed, device=CPU
    )


def read(feed: Feed, step: int) -> RawBatch:
    feed.seek(step)
    return RawBatch(*(part.clone() for part in feed.batch()))


@pytest.mark.parametrize("resident", [True, False])
def test_images_labels_and_positions_belong_together(resident: bool) -> None:
    data = make_dataset(resident=resident)
    feed = make_feed(data)
    assert isinstance(feed, ResidentFeed if resident else StreamingFeed)
    for step in range(20):
        raw = read(feed, step)
        positions = raw.labeled[:, 0, 0, 0].long()
        assert torch.equal(positions, data.labeled[raw.labeled_index])
        assert torch.equal(raw.labels, positions % 4)
        positions = raw.unlabeled[:, 0, 0, 0].long()
        assert torch.equal(positions, raw.unlabeled_index)
        assert torch.equal(raw.hidden_labels, data.labels[positions])
        assert raw.labeled.dtype == torch.uint8
        assert len(positions) == 12


def test_streaming_gives_the_same_batches() -> None:
    resident, streaming = make_feed(make_dataset()), make_feed(make_dataset(resident=False))
    for step in (0, 1, 2, 9, 3, 100, 101):
        for one, other in zip(read(resident, step), read(streaming, step), strict=True):
            assert torch.equal(one, other)


def test_streaming_reads_ahead_and_only_once() -> None:
    data = make_dataset(resident=False)
    feed = make_feed(data)
    for step in range(10):
        read(feed, step)
    assert isinstance(feed, StreamingFeed)
    assert isinstance(data.images, SlowStore)
    feed.reader.shutdown()
    assert data.images.reads == 10 + 3  # one read for labeled and unlabeled images


def test_processes_give_the_same_batches_and_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, draw_picture: Draw
) -> None:
    paths = [draw_picture(tmp_path / f"{i}.png", (i, 2 * i, 3 * i)) for i in range(30)]
    data = replace(make_dataset(), images=FileStore(paths, (8, 8)))
    threads = make_feed(data)
    monkeypatch.setattr("fullmatch.data.feed.decodes_in_processes", lambda device: True)
    processes = make_feed(data)
    assert isinstance(processes, StreamingFeed)
    assert isinstance(processes.store, FileStore)
    assert isinstance(data.images, FileStore)
    assert data.images.pool is None
    assert processes.store.pool is not None
    for step in (0, 1, 2, 9, 3, 100, 101):
        for one, other in zip(read(threads, step), read(processes, step), strict=True):
            assert torch.equal(one, other)
    pids, dropped = processes.store.pool.pids, weakref.ref(processes.store.pool)
    processes.reader.shutdown()
    del processes, one, other
    assert dropped() is None
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_processes_decode_only_for_a_gpu_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decodes_in_processes(torch.device("cuda"))
    assert not decodes_in_processes(CPU)
    monkeypatch.setattr("sys.platform", "darwin")
    assert not decodes_in_processes(torch.device("cuda"))


def test_streaming_writes_in_place() -> None:
    feed = make_feed(make_dataset(resident=False))
    feed.seek(0)
    pointers = [part.data_ptr() for part in feed.batch()]
    feed.seek(1)
    assert [part.data_ptr() for part in feed.batch()] == pointers


def test_error_of_the_reader_reaches_the_caller() -> None:
    data = make_dataset(resident=False)
    assert isinstance(data.images, SlowStore)
    data.images.broken = 17
    feed = make_feed(data)
    with pytest.raises(UserError, match="cannot read picture 17"):
        list(map(feed.seek, range(10)))


def test_order_depends_on_the_seed_and_differs_between_subsets() -> None:
    index = read(make_feed(make_dataset()), 0).unlabeled_index
    assert torch.equal(index, read(make_feed(make_dataset()), 0).unlabeled_index)
    assert not torch.equal(index, read(make_feed(make_dataset(), seed=1), 0).unlabeled_index)
    all_labeled = replace(make_dataset(), labeled=torch.arange(30))
    batch = read(make_feed(all_labeled, batch=12, ratio=1), 0)
    assert not torch.equal(batch.labeled_index, batch.unlabeled_index)


def test_a_small_set_shrinks_the_batch_with_a_note() -> None:
    feed = make_feed(make_dataset(), batch=16, ratio=2)
    raw = read(feed, 0)
    assert (len(raw.labels), len(raw.unlabeled_index)) == (10, 30)
    assert feed.notes == (
        "10 labeled images are fewer than a batch of 16: the batch shrinks to 10",
        "30 unlabeled images are fewer than a batch of 32: the batch shrinks to 30",
    )
    assert make_feed(make_dataset()).notes == ()


@pytest.mark.parametrize(("repeat", "size"), [(False, 10), (True, 64)])
def test_a_batch_of_more_labels_than_there_are(repeat: bool, size: int) -> None:
    data = make_dataset()
    feed = build_feed(
        data, labeled_batch=64, unlabeled_batch=64, seed=0, device=CPU, repeat_labels=repeat
    )
    raw = read(feed, 3)
    assert len(raw.labels) == size
    assert len(raw.labeled_index.unique()) == len(data.labeled) == 10
    assert torch.equal(raw.labels, data.labels[data.labeled][raw.labeled_index])
    assert len(raw.unlabeled) == 30  # never repeated
    notes = [note.split(" are ")[0] for note in feed.notes]
    assert notes == [*([] if repeat else ["10 labeled images"]), "30 unlabeled images"]
