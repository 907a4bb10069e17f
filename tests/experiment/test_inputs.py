"""A run goes on only with what it was given: labels, and pictures too."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fullmatch.data import FileStore, SemiDataset, Source, TensorStore
from fullmatch.errors import UserError
from fullmatch.experiment import inputs as given
from fullmatch.experiment.inputs import hash_of, hash_of_test, split_of
from fullmatch.experiment.run import resume, start
from fullmatch.experiment.settings import resolve
from fullmatch.storage import checkpoints as checkpoint
from fullmatch.storage.run_folder import RunFolder
from tests.own_pictures import picture, save
from tests.small_runs import abandon_after, begin, config, digits


def dataset(images: TensorStore | FileStore) -> SemiDataset:
    source = digits()
    return SemiDataset.of(replace(source, images=images, labels=source.labels[: len(images)]))


def test_labels_beside_a_split_of_another_number(tmp_path: Path) -> None:
    first = begin(config("supervised", labels=30), tmp_path / "first")
    split = f"data.split={first.folder.split}"
    given = begin(config("supervised", split), tmp_path / "given")
    assert given.split == first.split and given.config.data.labels == 30
    again = resolve(file=given.folder.config)  # holds both
    assert (
        split_of(again, digits())
        == split_of(config("supervised", split, labels=30), digits())
        == first.split
    )
    for wrong in (
        config("supervised", split, labels=20),
        resolve(file=given.folder.config, labels=20),
    ):
        with pytest.raises(UserError, match=r"keeps 30 labels, and data.labels asks for 20; leave"):
            begin(wrong, tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


def test_a_changed_pixel_is_noticed() -> None:
    pixels = digits().images.read(torch.arange(200))
    changed = pixels.clone()
    changed[-1, 0, 0, 0] ^= 1
    first, second = (hash_of(dataset(TensorStore(images))) for images in (pixels, changed))
    assert first == hash_of(dataset(TensorStore(pixels.clone()))) != second
    assert len(first) == len(second) == 48 and first[:16] == second[:16]


def test_of_many_pictures_a_sample_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "SAMPLE", 3)
    pixels = digits().images.read(torch.arange(5))
    for at, counts in enumerate((True, False, True, False, True)):
        changed = pixels.clone()
        changed[at] ^= 1
        same = given.pictures_hash(TensorStore(changed)) == given.pictures_hash(TensorStore(pixels))
        assert same is not counts


def test_files_are_known_by_name_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [save(picture("brick", i), tmp_path / "a" / f"{i}.png") for i in range(4)]
    before = hash_of(dataset(FileStore(paths, (8, 8))))
    monkeypatch.chdir(tmp_path)
    assert hash_of(dataset(FileStore([f"a/{i}.png" for i in range(4)], (8, 8)))) == before
    renamed = shutil.copy(paths[3], tmp_path / "b.png")
    assert hash_of(dataset(FileStore([*paths[:3], renamed], (8, 8)))) != before
    save(picture("water", 9, (20, 20)), paths[2])
    assert hash_of(dataset(FileStore(paths, (8, 8)))) != before


def test_swapped_pictures_stop_a_resume(tmp_path: Path) -> None:
    abandon_after(begin(config(), tmp_path / "run"), 6)
    source = digits()
    swapped = replace(source, images=TensorStore(255 - source.images.read(torch.arange(200))))
    with pytest.raises(UserError, match="pictures or labels of digits are not what they were"):
        resume(RunFolder(tmp_path / "run"), swapped)


def test_changed_tests_and_unlabeled_pictures_are_noticed() -> None:
    own = SemiDataset.of(replace(digits(), benchmark=False))
    assert own.test is not None and own.test_labels is not None
    pixels = own.test.read(torch.arange(50))
    pixels[-1] ^= 1
    for changed in (
        replace(own, test=TensorStore(pixels)),
        replace(own, test_labels=own.test_labels.roll(1)),
        replace(own, test=None, test_labels=None),
        replace(own, unlabeled=own.unlabeled[1:]),
    ):
        assert hash_of(changed)[:32] == hash_of(own)[:32] and hash_of(changed) != hash_of(own)


def test_test_files_are_the_same_at_every_size(tmp_path: Path) -> None:
    paths = [save(picture("brick", i), tmp_path / f"{i}.bmp") for i in range(3)]

    def found(side: int) -> str | None:
        store = FileStore(paths, (side, side))
        own = replace(digits(), benchmark=False)
        both = {hash_of_test(replace(own, test=each)) for each in (store, store.load())}
        (only,) = both
        return only

    before = found(8)
    assert before == found(12) and hash_of_test(digits()) is None
    size = paths[1].stat().st_size
    save(picture("brick", 9), paths[1])  # of the same name and size
    assert paths[1].stat().st_size == size and found(8) != before
    with pytest.raises(UserError, match="put it back"):
        store = FileStore(paths, (8, 8))
        paths[1].unlink()
        hash_of_test(replace(digits(), benchmark=False, test=store))


def test_a_picture_moved_to_the_test_stops_a_resume(tmp_path: Path) -> None:
    own = replace(digits(), benchmark=False)
    assert own.test is not None and own.test_labels is not None
    out = RunFolder.planned("own", tmp_path / "run")
    abandon_after(start(config("fullmatch", "data.labels=40"), out, own), 6)
    leaked = torch.cat([own.test.read(torch.arange(50)), own.images.read(torch.tensor([199]))])
    labels = torch.cat([own.test_labels, own.labels[199:]])
    moved: Source = replace(own, test=TensorStore(leaked), test_labels=labels)
    with pytest.raises(UserError, match="pictures or labels of digits are not what they were"):
        resume(RunFolder(tmp_path / "run"), moved)
    assert resume(RunFolder(tmp_path / "run"), own).state.step == 5


@pytest.mark.parametrize("kept", [16, 32])
def test_a_run_from_before_pictures_were_compared_goes_on(tmp_path: Path, kept: int) -> None:
    abandon_after(begin(config(), tmp_path / "run"), 6)
    place = checkpoint.whole(tmp_path / "run" / "checkpoints")[-1]
    tensors, facts = checkpoint.load(place)
    shutil.rmtree(place)
    checkpoint.save(
        place.parent, facts.pop("step"), tensors, facts | {"data": facts["data"][:kept]}
    )
    run = resume(RunFolder(tmp_path / "run"), digits())
    assert run.state.step == 5 and len(run.data_hash) == 48  # the next checkpoint knows them
    labels = digits().labels.clone()
    labels[-1] = (labels[-1] + 1) % 10
    with pytest.raises(UserError, match="are not what they were"):
        resume(RunFolder(tmp_path / "run"), replace(digits(), labels=labels))
