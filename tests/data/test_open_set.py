"""Classes without a label: their images stay, unlabeled and unknown."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fullmatch import data
from fullmatch.core import Appearance
from fullmatch.data import FileStore, Source, TensorStore
from fullmatch.data.open_set import SubsetStore, hide_classes, select_images
from fullmatch.errors import UserError
from tests.own_pictures import clean_folder, outlier, save


def toy_source() -> Source:
    """Image n is filled with n, and its label is n modulo 4; image 7 has no label."""
    images = torch.arange(12, dtype=torch.uint8)[:, None, None, None].expand(-1, 1, 2, 2)
    labels = torch.arange(12) % 4
    labels[7] = -1
    return Source(
        name="toy",
        images=TensorStore(images),
        labels=labels,
        test=TensorStore(images[:8], [f"{number}.png" for number in range(8)]),
        test_labels=torch.arange(8) % 4,
        classes=("a", "b", "c", "d"),
        appearance=Appearance(mean=(0.5,), std=(0.5,)),
        benchmark=True,
    )


def values(store: data.ImageStore | None) -> list[int]:
    assert store is not None
    return store.read(torch.arange(len(store)))[:, 0, 0, 0].tolist()


def test_hidden_classes_lose_their_labels_and_the_others_are_renumbered() -> None:
    source = hide_classes(toy_source(), ["c", "a"])
    assert source.classes == ("b", "d")
    assert source.unknown_classes == ("a", "c")
    assert source.labels.tolist() == [-1, 0, -1, 1, -1, 0, -1, -1, -1, 0, -1, 1]
    assert values(source.images) == list(range(12))
    assert values(source.test) == [1, 3, 5, 7]
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [0, 1, 0, 1]
    assert values(source.unknown_test) == [0, 2, 4, 6]
    assert source.unknown_test is not None
    assert source.unknown_test.paths == ("0.png", "2.png", "4.png", "6.png")
    (note,) = source.notes
    assert note == "2 unknown classes: a, c; 6 training images of them without a label"


def test_nothing_to_hide() -> None:
    source = toy_source()
    assert hide_classes(source, ()) is source
    assert hide_classes(source, ["no such class"]) is source
    hidden = hide_classes(source, ["a"])
    assert hide_classes(hidden, ["a"]) is hidden
    with pytest.raises(ValueError, match="at once"):
        hide_classes(hidden, ["b"])


def test_two_classes_must_stay_known() -> None:
    with pytest.raises(UserError, match="leaves only the class 'd' of toy; leave at least 2"):
        hide_classes(toy_source(), ["a", "b", "c"])
    with pytest.raises(UserError, match="leaves no class of toy"):
        hide_classes(toy_source(), ["a", "b", "c", "d"])


def test_without_test_images_of_unknown_classes() -> None:
    source = replace(toy_source(), test=None, test_labels=None)
    assert hide_classes(source, ["a"]).unknown_test is None
    known = replace(toy_source(), test_labels=torch.tensor([1, 2, 3, 1, 2, 3, 1, 2]))
    hidden = hide_classes(known, ["a"])
    assert hidden.unknown_test is None
    assert hidden.test is known.test
    assert hidden.test_labels is not None
    assert hidden.test_labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    with pytest.raises(UserError, match="all test images of toy are of unknown classes"):
        hide_classes(replace(toy_source(), test_labels=torch.zeros(8, dtype=torch.int64)), ["a"])


def test_a_benchmark_is_loaded_with_unknown_classes() -> None:
    source = data.load("digits", unknown_classes=("8", "9"))
    assert source.classes == tuple("01234567")
    assert source.unknown_classes == ("8", "9")
    whole = data.load("digits")
    assert len(source.images) == len(whole.images)
    assert source.test is not None
    assert whole.test is not None
    assert source.unknown_test is not None
    assert len(source.test) + len(source.unknown_test) == len(whole.test)
    assert isinstance(source.test, TensorStore)
    assert int((source.labels < 0).sum()) == int((whole.labels >= 8).sum())


@pytest.mark.parametrize("in_memory", [True, False])
def test_own_pictures_of_a_class_that_is_only_in_the_test_set(
    tmp_path: Path, in_memory: bool
) -> None:
    folder = clean_folder(tmp_path / "pets", labels=2, unlabeled=1, test=2)
    save(outlier(0), folder / "test" / "noise" / "0.png")
    with pytest.raises(UserError, match=r"class 'noise' that no labeled picture has; .* unknown: "):
        data.load(str(folder))
    source = data.load(str(folder), unknown_classes=("noise", "water"))
    assert source.classes == ("brick", "grass")
    assert source.unknown_classes == ("noise", "water")
    assert source.unknown_test is not None
    assert source.test is not None
    assert len(source.test) == 4
    assert [Path(path).parent.name for path in source.unknown_test.paths] == [
        "noise",
        "water",
        "water",
    ]
    assert int((source.labels >= 0).sum()) == 4
    if not in_memory:
        from fullmatch.data.sources.folders import from_folder

        streamed = from_folder(folder, max_bytes=0, unknown_classes=("noise", "water"))
        hidden = hide_classes(streamed, ("noise", "water"))
        assert isinstance(hidden.unknown_test, SubsetStore)
        assert hidden.unknown_test.paths == source.unknown_test.paths
        assert hidden.unknown_test.shape == source.unknown_test.shape
        index = torch.tensor([2, 0])
        assert torch.equal(hidden.unknown_test.read(index), source.unknown_test.read(index))


def test_a_table_of_own_pictures(tmp_path: Path) -> None:
    folder = clean_folder(tmp_path / "pets", labels=2, unlabeled=1)
    save(outlier(0), folder / "noise.png")
    rows = ["path,label,split", "noise.png,noise,test", "labeled/brick/1.png,brick,test"]
    rows += [f"labeled/{kind}/0.png,{kind}," for kind in ("brick", "grass", "water")]
    (folder / "labels.csv").write_text("\n".join(rows))
    source = data.load(str(folder / "labels.csv"), unknown_classes=["noise"])
    assert source.classes == ("brick", "grass", "water")
    assert source.unknown_test is not None
    assert len(source.unknown_test) == 1
    # How many of the unlabeled pictures show it is not known.
    assert source.notes[-1] == "1 unknown class: noise"


def test_subsets_of_files_are_read_from_the_files(tmp_path: Path) -> None:
    paths = [save(outlier(number), tmp_path / f"{number}.png") for number in range(3)]
    store = FileStore(paths, (8, 8))
    subset = select_images(store, torch.tensor([2, 1]))
    assert len(subset) == 2
    assert subset.paths == (str(paths[2]), str(paths[1]))
    assert torch.equal(subset.read(torch.tensor([1])), store.read(torch.tensor([1])))
