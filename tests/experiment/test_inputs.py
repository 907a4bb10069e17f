"""The pictures and labels of a run, and its config with every path spelled out."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.experiment.inputs import (
    choose_split,
    load_inputs,
    load_source,
    read_inputs,
    with_absolute_paths,
)
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


def test_unknown_classes_are_part_of_the_split(tmp_path: Path) -> None:
    chosen = config("supervised", "data.unknown_classes=9, 8", labels=16)
    first = begin(chosen, tmp_path / "first")
    assert first.split is not None
    assert first.config.data.unknown_classes == first.split.unknown_classes == ("8", "9")
    assert first.dataset.classes == tuple("01234567")
    assert set(first.split.targets) == set(range(8))
    again = config("supervised", f"data.split={first.folder.split}")
    second = begin(again, tmp_path / "second")
    assert second.split == first.split
    assert second.config.data.unknown_classes == ("8", "9")
    for wrong, message in (
        ("data.unknown_classes=7", "has the unknown classes 8, 9; leave one of the two"),
        ("data.unknown_classes=8", "names 8, but data.split"),
    ):
        with pytest.raises(UserError, match=message):
            begin(config("supervised", f"data.split={first.folder.split}", wrong), tmp_path / "no")
    plain = begin(config("supervised", labels=20), tmp_path / "plain")
    mixed = config("supervised", f"data.split={plain.folder.split}", "data.unknown_classes=8")
    with pytest.raises(UserError, match="has no unknown classes"):
        begin(mixed, tmp_path / "no")


def test_unknown_classes_must_be_classes() -> None:
    with pytest.raises(UserError, match=r"'8a', which is not a class of digits .* mean '8'"):
        load_inputs(config("supervised", "data.unknown_classes=8a"), digits())
    _, inputs = load_inputs(config("supervised", "data.unknown_classes="), digits())
    assert inputs.source is digits()


def test_own_pictures_keep_all_labels() -> None:
    own = replace(digits(), benchmark=False)
    assert choose_split(config("supervised", "data.labels=none"), own) is None
    split = choose_split(config("supervised", "data.labels=none"), digits())
    assert split is not None
    assert len(split.labeled) == 200
    some = choose_split(config("supervised", labels=30), own)
    assert some is not None
    assert len(some.labeled) == 30


LONG_TAIL = ("data.imbalance=4", "data.unlabeled_imbalance=-3", "data.unlabeled=40")


def test_long_tail_is_part_of_the_split(tmp_path: Path) -> None:
    chosen = config("fixmatch", *LONG_TAIL, labels=30)
    first = begin(chosen, tmp_path / "first")
    assert first.split is not None
    assert first.config == chosen
    assert len(first.dataset.unlabeled) == first.task.num_unlabeled == 40
    counts = first.dataset.label_counts
    assert sum(counts) == 30
    assert counts[0] >= 3 * counts[-1]
    assert counts == sorted(counts, reverse=True)
    list(first.records())
    assert first.result.unlabeled == 70  # which counts the labeled ones
    assert first.result.has_unlabeled
    again = begin(config("fixmatch", f"data.split={first.folder.split}"), tmp_path / "second")
    assert again.split == first.split
    assert again.dataset.unlabeled.equal(first.dataset.unlabeled)
    assert again.config.data.imbalance == 4
    assert again.config.data.unlabeled_imbalance == -3
    assert again.config.data.unlabeled == 40
    repeated = resolve(file=again.folder.config)
    assert choose_split(repeated, digits()) == first.split


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("data.imbalance=5", "drawn with data.imbalance = 4.0, but the config says 5.0; leave"),
        ("data.unlabeled=20", "drawn with data.unlabeled = 40, but"),
        ("data.unlabeled_imbalance=3", "drawn with data.unlabeled_imbalance = -3.0, but"),
    ],
)
def test_long_tail_and_a_split_must_agree(tmp_path: Path, setting: str, message: str) -> None:
    split = choose_split(config("fixmatch", *LONG_TAIL, labels=30), digits())
    assert split is not None
    split.save(tmp_path / "split.json")
    with pytest.raises(UserError, match=message):
        load_inputs(config("fixmatch", f"data.split={tmp_path / 'split.json'}", setting), digits())


@pytest.mark.parametrize(
    "settings", [("data.labels=none",), ("data.labels=40", "data.unlabeled_imbalance=5")]
)
def test_numbers_left_open_are_spelled_out(settings: tuple[str, ...]) -> None:
    complete, inputs = load_inputs(config("fixmatch", "data.imbalance=5", *settings), digits())
    assert inputs.split is not None
    assert complete.data.labels == len(inputs.split.labeled)
    chosen = inputs.split.unlabeled
    assert complete.data.unlabeled == (None if chosen is None else len(inputs.dataset.unlabeled))
    assert choose_split(complete, digits()) == inputs.split


def test_some_unlabeled_pictures_of_own_ones(tmp_path: Path) -> None:
    folder = clean_folder(tmp_path / "pets", labels=2, unlabeled=5)
    some = config("fixmatch", "data.labels=none", "data.unlabeled=3", data=str(folder))
    complete, inputs = load_inputs(some)
    assert len(inputs.dataset.labeled) == 6
    assert len(inputs.dataset.unlabeled) == 3
    assert inputs.dataset.image_count == 9
    assert complete.data.labels == 6
    tail = config("fixmatch", "data.labels=none", "data.unlabeled_imbalance=3", data=str(folder))
    with pytest.raises(UserError, match="needs the class of every image"):
        load_inputs(tail)


def test_small_classes_need_not_be_repeated() -> None:
    own = replace(digits(), benchmark=False)
    tail = config("fixmatch", "data.imbalance=5", labels=40)
    _, repeated = load_inputs(tail, own)
    assert len(repeated.dataset.labeled) > 40
    _, plain = load_inputs(
        config("fixmatch", "data.imbalance=5", "data.balance=false", labels=40), own
    )
    assert len(plain.dataset.labeled) == 40


def test_reversed_order_is_a_negative_number() -> None:
    with pytest.raises(UserError, match=r"is 0.5, expected 1 or more, or -1 or less"):
        config("fixmatch", "data.unlabeled_imbalance=0.5")
    with pytest.raises(UserError, match=r"data.imbalance is 0.5, expected 1 or more"):
        config("fixmatch", "data.imbalance=0.5")


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


def test_positions_of_both_sides_in_a_file(tmp_path: Path) -> None:
    drawn = choose_split(config("fixmatch", "data.unlabeled=50", labels=20), digits())
    assert drawn is not None
    assert drawn.unlabeled is not None
    path = tmp_path / "split.json"
    path.write_text(json.dumps({"labeled": drawn.labeled, "unlabeled": drawn.unlabeled}))
    run = begin(config("fixmatch", f"data.split={path}"), tmp_path / "run")
    assert run.split == drawn
    assert (run.config.data.labels, run.config.data.unlabeled) == (20, 50)
    path.unlink()  # the run has its own copy
    assert read_inputs(run.folder, run.config, digits()).split == drawn


def test_unknown_classes_beside_positions(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    known = [int((digits().labels == label).nonzero()[0]) for label in range(8)]
    path.write_text(json.dumps({"labeled": known}))
    chosen = config("supervised", f"data.split={path}", "data.unknown_classes=8, 9")
    _, inputs = load_inputs(chosen, digits())
    assert inputs.split is not None
    assert inputs.split.unknown_classes == ("8", "9")
    assert sorted(inputs.split.targets) == list(range(8))
