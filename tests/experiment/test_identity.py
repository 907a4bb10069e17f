"""A run never continues with other pictures or labels than it began with."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fullmatch.data import FileStore, SemiDataset, Source, TensorStore
from fullmatch.errors import UserError
from fullmatch.experiment import identity
from fullmatch.experiment.identity import hash_dataset, hash_pictures, hash_test
from fullmatch.experiment.start import resume, start
from fullmatch.storage.checkpoints import (
    complete_checkpoints,
    load_checkpoint,
    save_checkpoint,
)
from fullmatch.storage.run_folder import RunFolder
from tests.own_pictures import picture, save
from tests.small_runs import abandon_after, begin, config, digits


def dataset(images: TensorStore | FileStore) -> SemiDataset:
    source = digits()
    return SemiDataset.from_source(
        replace(source, images=images, labels=source.labels[: len(images)])
    )


def in_memory(store: FileStore) -> TensorStore:
    return TensorStore(store.read(torch.arange(len(store))), store.paths)


def test_a_changed_pixel_is_noticed() -> None:
    pixels = digits().images.read(torch.arange(200))
    changed = pixels.clone()
    changed[-1, 0, 0, 0] ^= 1
    first, second = (hash_dataset(dataset(TensorStore(images))) for images in (pixels, changed))
    assert first == hash_dataset(dataset(TensorStore(pixels.clone()))) != second
    assert len(first) == len(second) == 48
    assert first[:16] == second[:16]


def test_of_many_pictures_a_sample_is_read() -> None:
    count = 2 * identity.SAMPLE - 1  # every other one is in the sample
    pixels = torch.zeros(count, 1, 2, 2, dtype=torch.uint8)
    for at, counts in ((0, True), (1, False), (2, True), (count - 2, False), (count - 1, True)):
        changed = pixels.clone()
        changed[at] ^= 1
        same = hash_pictures(TensorStore(changed)) == hash_pictures(TensorStore(pixels))
        assert same is not counts


def test_files_are_identified_by_name_and_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [save(picture("brick", i), tmp_path / "a" / f"{i}.png") for i in range(4)]
    before = hash_dataset(dataset(FileStore(paths, (8, 8))))
    monkeypatch.chdir(tmp_path)
    assert hash_dataset(dataset(FileStore([f"a/{i}.png" for i in range(4)], (8, 8)))) == before
    renamed = shutil.copy(paths[3], tmp_path / "b.png")
    assert hash_dataset(dataset(FileStore([*paths[:3], renamed], (8, 8)))) != before
    save(picture("water", 9, (20, 20)), paths[2])
    assert hash_dataset(dataset(FileStore(paths, (8, 8)))) != before


def test_swapped_pictures_stop_a_resume(tmp_path: Path) -> None:
    abandon_after(begin(config(), tmp_path / "run"), 6)
    source = digits()
    swapped = replace(source, images=TensorStore(255 - source.images.read(torch.arange(200))))
    with pytest.raises(UserError, match="pictures or labels of digits have changed since"):
        resume(RunFolder(tmp_path / "run"), swapped)


def test_changed_test_and_unlabeled_pictures_are_noticed() -> None:
    own = SemiDataset.from_source(replace(digits(), benchmark=False))
    assert own.test is not None
    assert own.test_labels is not None
    pixels = own.test.read(torch.arange(50))
    pixels[-1] ^= 1
    for changed in (
        replace(own, test=TensorStore(pixels)),
        replace(own, test_labels=own.test_labels.roll(1)),
        replace(own, test=None, test_labels=None),
        replace(own, unlabeled=own.unlabeled[1:]),
    ):
        assert hash_dataset(changed)[:32] == hash_dataset(own)[:32]
        assert hash_dataset(changed) != hash_dataset(own)


def test_test_files_are_the_same_at_every_size(tmp_path: Path) -> None:
    paths = [save(picture("brick", i), tmp_path / f"{i}.bmp") for i in range(3)]

    def hash_at(side: int) -> str | None:
        store = FileStore(paths, (side, side))
        own = replace(digits(), benchmark=False)
        (only,) = {hash_test(replace(own, test=each)) for each in (store, in_memory(store))}
        return only

    before = hash_at(8)
    assert before == hash_at(12)
    assert hash_test(digits()) is None
    size = paths[1].stat().st_size
    save(picture("brick", 9), paths[1])  # of the same name and size
    assert paths[1].stat().st_size == size
    assert hash_at(8) != before
    own = replace(digits(), benchmark=False, test=FileStore(paths, (8, 8)))
    paths[1].unlink()
    with pytest.raises(UserError, match=r"cannot read .*: No such file or directory; restore it"):
        hash_test(own)


def test_a_picture_moved_to_the_test_stops_a_resume(tmp_path: Path) -> None:
    own = replace(digits(), benchmark=False)
    assert own.test is not None
    assert own.test_labels is not None
    out = RunFolder.planned("own", tmp_path / "run")
    abandon_after(start(config("fullmatch", "data.labels=40"), out, own), 6)
    leaked = torch.cat([own.test.read(torch.arange(50)), own.images.read(torch.tensor([199]))])
    labels = torch.cat([own.test_labels, own.labels[199:]])
    moved: Source = replace(own, test=TensorStore(leaked), test_labels=labels)
    with pytest.raises(UserError, match="pictures or labels of digits have changed since"):
        resume(RunFolder(tmp_path / "run"), moved)
    assert resume(RunFolder(tmp_path / "run"), own).state.step == 5


@pytest.mark.parametrize("length", [16, 32])
def test_runs_of_earlier_versions_continue(tmp_path: Path, length: int) -> None:
    """Their hashes are shorter, since they covered less of the data."""
    abandon_after(begin(config(), tmp_path / "run"), 6)
    place = complete_checkpoints(tmp_path / "run" / "checkpoints")[-1]
    tensors, facts = load_checkpoint(place)
    shutil.rmtree(place)
    save_checkpoint(place.parent, tensors, replace(facts, data=facts.data[:length]))
    run = resume(RunFolder(tmp_path / "run"), digits())
    assert run.state.step == 5
    assert len(run.data_hash) == 48  # which the next checkpoint has
    labels = digits().labels.clone()
    labels[-1] = (labels[-1] + 1) % 10
    with pytest.raises(
        UserError, match="have changed since the checkpoint of step 5 was saved; restore them"
    ):
        resume(RunFolder(tmp_path / "run"), replace(digits(), labels=labels))
