"""A run goes on only with what it was given: labels, and pictures too."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fullmatch import given
from fullmatch.data import FileStore, SemiDataset, TensorStore
from fullmatch.errors import UserError
from fullmatch.experiment import resume
from fullmatch.given import hash_of
from fullmatch.runfolder import RunFolder
from fullmatch.training import checkpoint
from tests.own_pictures import picture, save
from tests.small_runs import abandon_after, begin, config, digits


def dataset(images: TensorStore | FileStore) -> SemiDataset:
    source = digits()
    return SemiDataset.of(replace(source, images=images, labels=source.labels[: len(images)]))


def test_a_changed_pixel_is_noticed() -> None:
    pixels = digits().images.read(torch.arange(200))
    changed = pixels.clone()
    changed[-1, 0, 0, 0] ^= 1
    first, second = (hash_of(dataset(TensorStore(images))) for images in (pixels, changed))
    assert first == hash_of(dataset(TensorStore(pixels.clone()))) != second
    assert len(first) == len(second) == 32 and first[:16] == second[:16]


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


def test_a_run_from_before_pictures_were_compared_goes_on(tmp_path: Path) -> None:
    abandon_after(begin(config(), tmp_path / "run"), 6)
    place = checkpoint.whole(tmp_path / "run" / "checkpoints")[-1]
    tensors, facts = checkpoint.load(place)
    shutil.rmtree(place)
    checkpoint.save(place.parent, facts.pop("step"), tensors, facts | {"data": facts["data"][:16]})
    run = resume(RunFolder(tmp_path / "run"), digits())
    assert run.state.step == 5 and len(run.data_hash) == 32  # the next checkpoint knows them
    labels = digits().labels.clone()
    labels[-1] = (labels[-1] + 1) % 10
    with pytest.raises(UserError, match="are not what they were"):
        resume(RunFolder(tmp_path / "run"), replace(digits(), labels=labels))
