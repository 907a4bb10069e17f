"""Folders of pictures as users have them, and the errors for those that cannot be used."""

import os
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fullmatch.data import SemiDataset, load
from fullmatch.data.sources.folders import find_pictures, from_folder
from fullmatch.data.sources.survey import survey_pictures
from fullmatch.data.stores.files import FileStore
from fullmatch.data.stores.memory import TensorStore
from fullmatch.errors import UserError
from tests.data.conftest import Draw


def assert_rejected(folder: Path, message: str) -> None:
    before = sorted(str(path) for path in folder.rglob("*"))
    with pytest.raises(UserError, match=message) as caught:
        load(str(folder))
    assert "\n" not in str(caught.value)
    assert before == sorted(str(path) for path in folder.rglob("*"))


def test_labeled_unlabeled_and_test(pets: Path) -> None:
    source = load(str(pets))
    assert source.classes == ("cat", "dog")
    assert source.name == "pets"
    assert not source.benchmark
    assert source.labels.tolist() == [0, 0, 0, 1, 1, 1] + [-1] * 5
    assert source.images.shape == (3, 32, 32)
    assert source.images.read(torch.tensor([0, 5]))[:, :, 9, 9].tolist() == [
        [200, 30, 30],
        [30, 30, 200],
    ]
    assert source.test is not None
    assert source.test_labels is not None
    assert len(source.test) == 2
    assert source.test_labels.tolist() == [0, 1]
    assert source.notes == ()
    assert isinstance(source.test, TensorStore)
    assert source.test.paths == tuple(
        str(pets / "test" / name / "0.png") for name in source.classes
    )
    data = SemiDataset.from_source(source)
    assert data.labeled.tolist() == list(range(6))
    assert len(data.unlabeled) == 11


@pytest.mark.parametrize("name", ["unlabeled", "_unlabeled", "Unlabelled"])
def test_class_folders_next_to_the_unlabeled_folder(pets: Path, name: str) -> None:
    for label in ("cat", "dog"):
        (pets / "labeled" / label).rename(pets / label)
    (pets / "labeled").rmdir()
    (pets / "unlabeled").rename(pets / name)
    source = load(str(pets))
    assert source.classes == ("cat", "dog")
    assert source.labels.tolist() == [0, 0, 0, 1, 1, 1] + [-1] * 5
    assert source.test_labels is not None
    assert len(source.test_labels) == 2


def test_a_class_may_be_called_test(tmp_path: Path, draw_picture: Draw) -> None:
    for label in ("test", "exam"):
        draw_picture(tmp_path / "tests" / label / "a.png")
    source = load(str(tmp_path / "tests"))
    assert source.classes == ("exam", "test")
    assert source.test is None
    assert any("no unlabeled pictures" in note for note in source.notes)


def test_names_in_every_script_and_case(tmp_path: Path, draw_picture: Draw) -> None:
    folder = tmp_path / "Füße 中"
    draw_picture(folder / "labeled" / "Äpfel" / "später 猫.PNG")
    draw_picture(folder / "labeled" / "class 10" / ("x" * 240 + ".JpEg"))
    draw_picture(folder / "labeled" / "class 9" / "a.tiff")
    draw_picture(folder / "test" / unicodedata.normalize("NFD", "Äpfel") / "a.webp")
    source = load(str(folder))
    assert source.classes == ("class 9", "class 10", "Äpfel")
    assert source.test_labels is not None
    assert source.test_labels.tolist() == [2]


def test_every_extension(tmp_path: Path, draw_picture: Draw) -> None:
    for kind in ["jpg", "jpeg", "png", "bmp", "gif", "webp", "tif", "tiff", "ppm"]:
        draw_picture(tmp_path / f"a.{kind}")
    draw_picture(tmp_path / "a.pgm", 7)
    assert len(find_pictures(tmp_path)) == 10


def test_other_files_and_folders_are_left_out(pets: Path, draw_picture: Draw) -> None:
    draw_picture(pets / ".cache/a.png")
    draw_picture(pets / "labeled/__MACOSX/a.png")
    draw_picture(pets / "unlabled/a.png")
    draw_picture(pets / "labeled/.hidden/a.png")
    draw_picture(pets / "labeled/cat/.thumbnails/a.png")
    draw_picture(pets / "labeled/cat/._1.png")
    draw_picture(pets / "labeled/loose.png")
    draw_picture(pets / "labeled/unlabeled/a.png")
    draw_picture(pets / "test/loose.png")
    for name in ("labeled/cat/.DS_Store", "unlabeled/Thumbs.db", "unlabeled/desktop.ini"):
        (pets / name).write_bytes(b"?")
    for name in ("unlabeled/a.HEIC", "unlabeled/b.heic", "labeled/dog/readme"):
        (pets / name).write_bytes(b"?")
    source = load(str(pets))
    assert source.classes == ("cat", "dog")
    assert len(source.images) == 12
    unknown, loose, loose_test, other = source.notes
    assert unknown == "folders other than labeled, unlabeled and test left out: unlabled"
    assert loose.startswith("1 picture directly in")
    assert "pets/labeled" in loose
    assert loose_test.startswith("1 picture directly in")
    assert "pets/test" in loose_test
    assert other == "3 non-picture files (.heic 2, no extension 1): left out"


def test_links_may_loop(pets: Path) -> None:
    (pets / "unlabeled/deep/up").symlink_to(pets / "unlabeled")
    (pets / "labeled/cat/self").symlink_to(pets / "labeled/cat")
    (pets / "unlabeled/knot").symlink_to("knot")
    assert len(load(str(pets)).images) == 11


def test_a_link_up_does_not_make_labeled_pictures_unlabeled(pets: Path) -> None:
    before = find_pictures(pets / "unlabeled")
    (pets / "unlabeled/up").symlink_to("..")
    assert find_pictures(pets / "unlabeled") == before


def test_pipes_are_skipped(pets: Path) -> None:
    before = find_pictures(pets / "unlabeled")
    os.mkfifo(pets / "unlabeled/pipe.png")
    skipped: dict[str, str] = {}
    assert find_pictures(pets / "unlabeled", skipped) == before
    assert skipped == {str(pets / "unlabeled/pipe.png"): "not a regular file"}


def test_linked_folder_is_followed(pets: Path, tmp_path: Path, draw_picture: Draw) -> None:
    draw_picture(tmp_path / "far/a.png")
    (pets / "unlabeled/far").symlink_to(tmp_path / "far")
    assert len(load(str(pets)).images) == 12


def test_gray_pictures_have_one_channel(tmp_path: Path, draw_picture: Draw) -> None:
    for label in ("a", "b"):
        draw_picture(tmp_path / f"set/{label}/0.png", 90)
    deep = np.full((40, 40), 90 * 257, np.uint16)
    (tmp_path / "set/unlabeled").mkdir()
    Image.fromarray(deep).save(tmp_path / "set/unlabeled/deep.png")
    source = load(str(tmp_path / "set"))
    assert source.images.shape == (1, 32, 32)
    assert source.images.read(torch.arange(3)).unique().tolist() == [90]
    draw_picture(tmp_path / "set/unlabeled/color.png")
    assert load(str(tmp_path / "set")).images.shape == (3, 32, 32)


@pytest.mark.parametrize(
    ("sides", "chosen"), [((5, 9, 20), 32), ((40, 100, 5000), 96), ((600, 700, 10), 224)]
)
def test_size_follows_the_median_picture(
    tmp_path: Path, draw_picture: Draw, sides: tuple[int, ...], chosen: int
) -> None:
    for label, side in zip(("a", "b", "unlabeled"), sides, strict=True):
        draw_picture(tmp_path / label / "0.png", 9, (side, side + 7))
    source = load(str(tmp_path))
    assert source.images.shape == (1, chosen, chosen)
    assert source.appearance.padding == chosen // 8
    assert load(str(tmp_path), size=48).images.shape == (1, 48, 48)


def test_pictures_that_do_not_fit_into_memory_are_decoded_when_read(pets: Path) -> None:
    resident = load(str(pets))
    (pets / "unlabeled/deep/0.jpg").write_bytes(b"")
    source = from_folder(pets, max_bytes=1000)
    assert isinstance(resident.images, TensorStore)
    assert isinstance(source.images, FileStore)
    assert len(source.images) == 10
    assert len(source.labels) == 10
    readable = torch.tensor([0, 1, 2, 3, 4, 5, 7, 8, 9, 10])
    assert source.images.read(torch.arange(10)).equal(resident.images.read(readable))


@pytest.mark.parametrize("bad", [0, 1, 5, 50])
def test_unreadable_unlabeled_pictures_are_counted_and_left_out(
    tmp_path: Path, draw_picture: Draw, bad: int
) -> None:
    for i in range(100):
        draw_picture(tmp_path / f"set/unlabeled/{i:03}.png", 200, (4, 4))
    for label in ("a", "b"):
        draw_picture(tmp_path / f"set/labeled/{label}/0.png", 100, (4, 4))
    for i in range(bad):
        (tmp_path / f"set/unlabeled/{i:03}.png").write_bytes(b"<html>")
    source = load(str(tmp_path / "set"))
    assert len(source.images) == 102 - bad
    assert (source.labels == -1).sum() == 100 - bad
    assert source.images.read(torch.arange(2, 102 - bad)).unique().tolist() == [200]
    assert any(note.startswith("WARNING") for note in source.notes) == (bad > 5)
    if bad:
        count = f"{bad} unreadable unlabeled picture{'s' * (bad > 1)}"
        share = f" ({bad}%)" if bad > 5 else ""
        assert f"{count} left out{share}: " in source.notes[0]
        assert "000.png" in source.notes[0]
        assert "\n" not in source.notes[0]
    assert bad != 50 or "and 47 more" in source.notes[0]


def test_mostly_unreadable_is_an_error(pets: Path) -> None:
    for i in range(3):
        (pets / f"unlabeled/deep/{i}.jpg").write_bytes(b"")
    assert_rejected(pets, "3 of 5 unlabeled pictures cannot be read: .*0.jpg.*check whether")


def test_unreadable_test_pictures_are_left_out(pets: Path, draw_picture: Draw) -> None:
    draw_picture(pets / "test/cat/1.png")
    (pets / "test/cat/0.png").write_bytes(b"")
    source = load(str(pets))
    assert source.test is not None
    assert source.test_labels is not None
    assert len(source.test) == 2
    assert source.test_labels.tolist() == [0, 1]
    assert "1 unreadable test picture left out (33%)" in source.notes[0]


def test_unreadable_labeled_pictures_are_an_error(pets: Path) -> None:
    for name in ("cat/0.png", "dog/2.png"):
        (pets / "labeled" / name).write_bytes(b"")
    assert_rejected(pets, "2 labeled pictures cannot be read: .*cat/0.png, .*dog/2.png; repair")


def test_broken_link_to_a_labeled_picture_is_an_error(pets: Path) -> None:
    (pets / "labeled/cat/9.png").symlink_to("nowhere.png")
    assert_rejected(pets, "1 labeled picture cannot be read: .*9.png")


def test_no_pictures(tmp_path: Path) -> None:
    assert_rejected(tmp_path, "no pictures in")
    (tmp_path / "labeled/cat").mkdir(parents=True)
    (tmp_path / "labeled/cat/notes.txt").write_text("?")
    assert_rejected(tmp_path, "no pictures in")


def test_empty_class(pets: Path) -> None:
    (pets / "labeled/cow").mkdir()
    assert_rejected(pets, "no picture in .*labeled/cow; give every class")


def test_one_class_only(pets: Path) -> None:
    (pets / "labeled/dog").rename(pets / "unlabeled/dog")
    assert_rejected(pets, "only the class 'cat'; label pictures of at least 2 classes")


def test_no_labels(tmp_path: Path, draw_picture: Draw) -> None:
    draw_picture(tmp_path / "unlabeled/a.png")
    assert_rejected(tmp_path, "no labeled pictures")


def test_unknown_class_in_the_test_set(pets: Path, draw_picture: Draw) -> None:
    draw_picture(pets / "test/cow/a.png")
    assert_rejected(pets, "class 'cow' that no labeled picture has")


def test_pictures_are_never_changed(pets: Path) -> None:
    files = sorted(path for path in pets.rglob("*") if path.is_file())
    before = [(path.read_bytes(), os.stat(path).st_mtime_ns) for path in files]
    load(str(pets))
    assert before == [(path.read_bytes(), os.stat(path).st_mtime_ns) for path in files]


def test_size_must_not_be_too_small(pets: Path) -> None:
    with pytest.raises(UserError, match="too small; use 8 or more"):
        load(str(pets), size=0)


def test_neither_name_nor_path(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'cifar10'"):
        load("cifr10")
    (tmp_path / "a.txt").write_text("?")
    with pytest.raises(UserError, match="is not a data set"):
        load(str(tmp_path / "a.txt"))


@pytest.mark.parametrize("entry", [(Path, "iterdir"), (os, "scandir")])
def test_folder_without_permission(
    pets: Path, monkeypatch: pytest.MonkeyPatch, entry: tuple[object, str]
) -> None:
    def deny(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(*entry, deny)
        with pytest.raises(UserError, match=r"cannot open .*pets.*check its permissions"):
            load(str(pets))


def test_error_for_pictures_outside_class_folders(tmp_path: Path) -> None:
    for number in range(2):
        Image.new("RGB", (8, 8)).save(tmp_path / f"{number}.png")
    message = "2 pictures directly in .*, and no class folders"
    with pytest.raises(UserError, match=message):
        load(str(tmp_path))
    with pytest.raises(UserError, match=message):
        survey_pictures(tmp_path)
