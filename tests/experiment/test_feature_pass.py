"""Every picture goes through the body once: rows survive interrupts and a full disk."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fullmatch.config import AugmentConfig, ViewConfig
from fullmatch.core import Appearance
from fullmatch.data import TensorStore
from fullmatch.experiment.feature_pass import (
    BATCH,
    FeaturePass,
    FrozenFeatures,
    PassOptions,
    compute_features,
    create_rows,
    embed_rows,
    release_memory,
)
from fullmatch.experiment.frozen_model import LARGE_SIZES, SMALL_SIDE, SMALL_SIZES, choose_sizes
from fullmatch.models.frozen import Embedding
from tests.frozen_runs import SIZES, tiny_model
from tests.full_disk import full_disk

CPU = torch.device("cpu")
COUNT = 3 * BATCH + 1
VIEWS = 1 + len(SIZES)


def pictures(count: int = COUNT, channels: int = 3, seed: int = 0) -> TensorStore:
    generator = torch.Generator().manual_seed(seed)
    size = (count, channels, 24, 24)
    return TensorStore(torch.randint(0, 256, size, generator=generator, dtype=torch.uint8))


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the batches that went through the body."""
    sizes: list[int] = []
    describe = FeaturePass.describe_batch

    def count(self: FeaturePass, images: Tensor, crops: int) -> object:
        sizes.append(len(images))
        return describe(self, images, crops)

    monkeypatch.setattr(FeaturePass, "describe_batch", count)
    return sizes


@pytest.fixture
def note_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say after every batch how far the pass is, rather than after 25."""
    note = FeaturePass.note_done

    def often(self: FeaturePass, store: object, shape: tuple[int, ...], *rest: object) -> None:
        done = rest[-1]
        note(self, store, (done, *shape[1:]), *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(FeaturePass, "note_done", often)


def features(
    folder: Path | None, store: TensorStore, test: TensorStore | None = None, crops: int = 0
) -> tuple[FrozenFeatures, list[str]]:
    options = PassOptions(folder=folder, crops=crops)
    return compute_features(tiny_model(), store, test, CPU, options)


def rows_of(folder: Path | None, crops: int = 0, seed: int = 0) -> "tuple[Tensor, list[str]]":
    work = FeaturePass(tiny_model(), folder, CPU)
    rows = work.describe(pictures(), crops, seed, lambda done, total: None)
    return torch.from_numpy(np.array(rows)), work.notes


def test_views_of_a_picture() -> None:
    model = tiny_model()
    rows, notes = rows_of(None, crops=2)
    assert rows.shape == (COUNT, VIEWS + 4, sum(model.widths))
    assert rows.dtype == torch.float16
    assert notes == []
    plain, first, second = rows[:, :VIEWS].float().unbind(dim=1)
    assert torch.allclose(plain, (first + second) / 2, atol=2e-3)
    assert not torch.equal(rows[:, VIEWS], rows[:, VIEWS + 2])  # two weak crops
    assert not torch.equal(rows[:, VIEWS + 1], rows[:, VIEWS + 3])  # two strong crops


def test_the_plain_view_is_what_prediction_computes() -> None:
    model = tiny_model()
    rows, _ = rows_of(None)
    with torch.no_grad():
        view = FeaturePass(model, None, CPU).augment(pictures().images, "plain")
        expected = model.body(view)
    assert torch.allclose(rows[:, 0].float(), expected, atol=1e-3)


def test_views_by_name_have_rows_of_their_own(tmp_path: Path) -> None:
    def describe(views: AugmentConfig, crops: int) -> Tensor:
        work = FeaturePass(tiny_model(), tmp_path, CPU, views)
        rows = work.describe(pictures(), crops, 0, lambda done, total: None)
        return torch.from_numpy(np.array(rows))

    plain = AugmentConfig(strong=ViewConfig(name="plain"))
    published, other = describe(AugmentConfig(), 1), describe(plain, 1)
    assert len(list(tmp_path.glob("*.npy"))) == 2
    assert torch.equal(published[:, :-1], other[:, :-1])  # all but the strong one
    assert not torch.equal(published[:, -1], other[:, -1])
    assert torch.equal(describe(plain, 0), describe(AugmentConfig(), 0))  # without crops, the same
    assert len(list(tmp_path.glob("*.npy"))) == 3


@pytest.mark.parametrize("crops", [0, 1])
def test_a_second_pass_reads_what_the_first_wrote(
    crops: int, tmp_path: Path, batches: list[int]
) -> None:
    first, notes = rows_of(tmp_path / "cache", crops)
    assert batches == [BATCH, BATCH, BATCH, 1]
    batches.clear()
    second, more_notes = rows_of(tmp_path / "cache", crops)
    assert batches == []
    assert torch.equal(first, second)
    assert notes == more_notes == []


def test_other_pictures_seeds_crops_and_weights_have_rows_of_their_own(
    tmp_path: Path, batches: list[int]
) -> None:
    def count(**changes: object) -> int:
        batches.clear()
        settings = {"store": pictures(), "crops": 0, "seed": 0, "model": tiny_model()} | changes
        work = FeaturePass(settings["model"], tmp_path, CPU)  # type: ignore[arg-type]
        work.describe(
            settings["store"],  # type: ignore[arg-type]
            settings["crops"],  # type: ignore[arg-type]
            settings["seed"],  # type: ignore[arg-type]
            lambda done, total: None,
        )
        return sum(batches)

    assert count() == COUNT
    assert count() == 0
    assert count(store=pictures(seed=1)) == COUNT
    assert count(store=pictures(COUNT - 1)) == COUNT - 1
    assert count(crops=1) == COUNT
    assert count(crops=1, seed=1) == COUNT
    assert count(model=replace(tiny_model(), identity="others")) == COUNT
    assert count() == 0


def interrupt_at(picture: int) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done >= picture:
            raise KeyboardInterrupt

    return progress


@pytest.mark.usefixtures("note_often")
@pytest.mark.parametrize("crops", [0, 2])
def test_an_interrupted_pass_continues(crops: int, tmp_path: Path, batches: list[int]) -> None:
    expected, _ = rows_of(None, crops)
    work = FeaturePass(tiny_model(), tmp_path, CPU)
    with pytest.raises(KeyboardInterrupt):
        work.describe(pictures(), crops, 0, interrupt_at(2 * BATCH))
    batches.clear()
    torch.rand(5)  # another state of the generator
    rows, notes = rows_of(tmp_path, crops)
    assert batches == [BATCH, 1]
    assert torch.equal(rows, expected)
    assert notes == []


def test_progress_counts_all_pictures() -> None:
    reports: list[tuple[int, int]] = []
    options = PassOptions(crops=0, progress=lambda done, total: reports.append((done, total)))
    compute_features(tiny_model(), pictures(), pictures(10, seed=1), CPU, options)
    assert reports == [(done, COUNT + 10) for done in (8, 16, 24, 25, 33, 35)]


def cache_file(folder: Path) -> Path:
    (path,) = folder.glob("*.npy")
    return path


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def damage(path: Path) -> None:
    path.write_bytes(b"not an array")


def reshape(path: Path) -> None:
    np.save(path, np.zeros((COUNT, VIEWS, 5), np.float16))


def fewer_rows(path: Path) -> None:
    np.save(path, np.load(path)[:-1])


def change_type(path: Path) -> None:
    np.save(path, np.load(path).astype(np.float32))


def delete(path: Path) -> None:
    path.unlink()


def damage_note(path: Path) -> None:
    path.with_suffix(".json").write_text('{"done": ')


def wrong_note(path: Path) -> None:
    path.with_suffix(".json").write_text(json.dumps({"done": COUNT + 1}))


def negative_note(path: Path) -> None:
    path.with_suffix(".json").write_text(json.dumps({"done": -3}))


@pytest.mark.parametrize(
    "change",
    [
        shorten,
        damage,
        reshape,
        fewer_rows,
        change_type,
        delete,
        damage_note,
        wrong_note,
        negative_note,
    ],
)
def test_files_that_do_not_fit_are_written_again(
    change: Callable[[Path], None], tmp_path: Path, batches: list[int]
) -> None:
    expected, _ = rows_of(tmp_path)
    change(cache_file(tmp_path))
    batches.clear()
    rows, notes = rows_of(tmp_path)
    assert sum(batches) == COUNT
    assert torch.equal(rows, expected)
    assert notes == []
    batches.clear()
    assert torch.equal(rows_of(tmp_path)[0], expected)
    assert batches == []


def test_a_lost_file_and_an_interrupt_leave_no_empty_rows(tmp_path: Path) -> None:
    """The note of the lost file must not count for the new one."""
    expected, _ = rows_of(tmp_path)
    cache_file(tmp_path).unlink()
    work = FeaturePass(tiny_model(), tmp_path, CPU)
    with pytest.raises(KeyboardInterrupt):
        work.describe(pictures(), 0, 0, interrupt_at(BATCH))
    assert torch.equal(rows_of(tmp_path)[0], expected)


def test_a_full_disk_is_no_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected, _ = rows_of(None)
    with full_disk(1000):
        rows, notes = rows_of(tmp_path)
    assert torch.equal(rows, expected)
    assert notes == ["features are not kept on disk (File too large): continuing without"]
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_is_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, _ = rows_of(None)

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    rows, notes = rows_of(tmp_path)
    assert torch.equal(rows, expected)
    assert notes == ["features are not kept on disk (No space left on device): continuing without"]


def test_room_is_reserved_before_rows_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write through a memory map to a full disk would kill the process."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    rows, notes = rows_of(tmp_path)
    assert torch.equal(rows, rows_of(None)[0])
    assert len(notes) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_noted(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    found, notes = features(blocked / "cache", pictures(), pictures(10, seed=1))
    assert found.test is not None
    assert notes == ["features are not kept on disk (Not a directory): continuing without"]


def test_features_of_test_pictures(tmp_path: Path, batches: list[int]) -> None:
    found, _ = features(tmp_path, pictures(), pictures(10, seed=1), crops=1)
    untested, _ = features(None, pictures(), crops=1)
    assert untested.test is None
    assert found.test is not None
    assert found.test.shape == (10, found.training.shape[2])
    assert torch.equal(found.training, untested.training)
    same, _ = features(None, pictures(), pictures(), crops=0)
    assert same.test is not None
    assert torch.allclose(same.test, same.plain, atol=1e-6)


def test_which_views_are_weak_and_strong() -> None:
    without, _ = features(None, pictures())
    assert (without.weak, without.strong) == ((0, 1, 2), (1, 2))
    assert without.training.shape[1] == VIEWS
    crops, _ = features(None, pictures(), crops=2)
    assert (crops.weak, crops.strong) == ((0, 1, 2), (1, 2, 3, 4, 5, 6))
    assert crops.training.shape[1] == VIEWS + 4


def test_held_out_pictures_become_the_test() -> None:
    found, _ = features(None, pictures())
    held_out = torch.tensor([3, 0])
    assert torch.equal(found.with_test(held_out).test, found.plain[held_out])  # type: ignore[arg-type]


def test_the_embedding_is_fitted_on_a_sample() -> None:
    options = PassOptions(crops=0, fitted=10)
    found, _ = compute_features(tiny_model(), pictures(), None, CPU, options)
    assert found.embedding.dimensions == (5, 5)
    assert found.training.shape == (COUNT, VIEWS, 10)


def test_gray_pictures() -> None:
    appearance = Appearance(mean=(0.5,), std=(0.25,), padding=2)
    model = tiny_model(appearance=appearance)
    gray = pictures(channels=1)
    found, _ = compute_features(model, gray, None, CPU, PassOptions(crops=1))
    assert torch.isfinite(found.training).all()
    colored = TensorStore(gray.images.expand(-1, 3, -1, -1).contiguous())
    same = Appearance(mean=(model.appearance.mean[0],) * 3, std=model.appearance.std * 3, padding=2)
    expected, _ = compute_features(
        replace(model, appearance=same), colored, None, CPU, PassOptions(crops=0)
    )
    assert torch.allclose(found.plain, expected.plain, atol=5e-3)


def test_a_body_without_a_classifier() -> None:
    model = tiny_model(classifier=False)
    found, _ = compute_features(model, pictures(), None, CPU, PassOptions(crops=0))
    assert len(found.embedding.dimensions) == 1


def test_rows_are_embedded_in_parts() -> None:
    rows = np.random.default_rng(0).random((2003, 2, 6)).astype(np.float16)
    embedding = Embedding.fit(torch.from_numpy(rows[:, 0]).float(), (4, 2))
    embedded = embed_rows(embedding, rows)
    assert embedded.shape == (2003, 2, 6)
    expected = embedding(torch.from_numpy(rows[1500]).float())
    assert torch.allclose(embedded[1500].float(), expected, atol=1e-3)  # kept in 16 bits


def test_released_rows_are_read_again(tmp_path: Path) -> None:
    rows = create_rows(tmp_path / "rows.npy", (100, 2, 3))
    rows[:] = np.arange(600).reshape(100, 2, 3)
    release_memory(rows)
    assert rows[99, 1, 2] == 599
    release_memory(np.zeros((2, 2), np.float16))  # in memory: nothing to release


def test_sizes_follow_the_pictures() -> None:
    assert choose_sizes(72) == choose_sizes(SMALL_SIDE) == SMALL_SIZES
    assert choose_sizes(SMALL_SIDE + 1) == LARGE_SIZES
