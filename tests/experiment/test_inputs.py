"""The pictures and labels of a run, and its config with every path spelled out."""

from dataclasses import replace
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.experiment.inputs import choose_split, load_inputs, load_source, with_absolute_paths
from fullmatch.experiment.settings import resolve
from tests.own_pictures import clean_folder
from tests.small_runs import begin, config, digits


def test_labels_and_a_split_must_agree(tmp_path: Path) -> None:
    first = begin(config("supervised", labels=30), tmp_path / "first")
    split = f"data.split={first.folder.split}"
    second = begin(config("supervised", split), tmp_path / "second")
    assert second.split == first.split
    assert second.config.data.labels == 30
    repeated = resolve(file=second.folder.config)  # holds both
    both = config("supervised", split, labels=30)
    assert choose_split(repeated, digits()) == choose_split(both, digits()) == first.split
    for wrong in (
        config("supervised", split, labels=20),
        resolve(file=second.folder.config, labels=20),
    ):
        with pytest.raises(UserError, match=r"keeps 30 labels, but data.labels asks for 20; leave"):
            begin(wrong, tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


def test_own_pictures_keep_all_labels() -> None:
    own = replace(digits(), benchmark=False)
    assert choose_split(config("supervised", "data.labels=none"), own) is None
    split = choose_split(config("supervised", "data.labels=none"), digits())
    assert split is not None
    assert len(split.labeled) == 200
    some = choose_split(config("supervised", labels=30), own)
    assert some is not None
    assert len(some.labeled) == 30


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean_folder(tmp_path / "pets", labels=2, unlabeled=1)
    monkeypatch.chdir(tmp_path)
    relative = config(
        "fullmatch", "data.root=data", "data.split=some.json", "model.start=runs/a", data="pets"
    )
    absolute = with_absolute_paths(relative, None)
    assert absolute.data.name == str(tmp_path / "pets")
    assert absolute.data.labels is None
    assert absolute.data.root == str(tmp_path / "data")
    assert absolute.data.split == str(tmp_path / "some.json")
    assert absolute.model.start == str(tmp_path / "runs/a")
    assert absolute.model.weights is None
    weights = with_absolute_paths(config("fullmatch", "model.weights=a.pth"), None)
    assert weights.model.weights == str(tmp_path / "a.pth")
    assert weights.data.name == "digits"
    assert weights.data.root is None
    (tmp_path / "digits").mkdir()  # the name of a data set comes first
    assert with_absolute_paths(config(), None).data.name == "digits"


def test_what_a_new_run_gets(tmp_path: Path) -> None:
    folder = clean_folder(tmp_path / "pets", labels=2, unlabeled=1)
    requested = config("fullmatch", "data.labels=none", "data.size=16", data=str(folder))
    complete, inputs = load_inputs(requested)
    assert complete == requested
    assert inputs.split is None
    assert inputs.dataset.images.shape == load_source(requested).images.shape == (3, 16, 16)
    assert len(inputs.dataset.labeled) == 6
    assert len(inputs.dataset.unlabeled) == 9
    complete, inputs = load_inputs(config(), digits())
    assert inputs.source is digits()
    assert inputs.split is not None
    assert complete.data.labels == len(inputs.split.labeled) == 40
