"""Everything that goes wrong with pictures is said, and refused exactly when training refuses."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fullmatch import data
from fullmatch.data import SemiDataset
from fullmatch.data.quality.check import Check, Remark, examine, examine_source
from fullmatch.data.quality.cleaning import prepared
from fullmatch.errors import UserError
from tests.own_pictures import clean_folder, picture, save, stranger


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return clean_folder(tmp_path / "own")


def remark(check: Check, kind: str) -> Remark:
    (found,) = [one for one in check.remarks if one.kind == kind]
    return found


def test_nothing_to_say_of_a_clean_folder(folder: Path) -> None:
    heard: list[int] = []
    check = examine(folder, heard.append)
    assert check.remarks == () and check.works
    assert check.classes == {"brick": 6, "grass": 6, "water": 6} and check.unlabeled == 36
    assert (check.side, check.channels, check.test) == (32, 3, {})
    assert check.sizes == {"smallest": (48, 40), "largest": (48, 40)}
    assert heard == [54] * 54


def test_copies_of_every_kind(folder: Path) -> None:
    first = folder / "labeled/brick/0.png"
    image = Image.open(first)
    save(image, folder / "unlabeled/copy.bmp")
    save(image, folder / "labeled/grass/wrong.png")
    save(image, folder / "test/brick/leak.png")
    save(picture("water", 77), folder / "test/water/77.png")
    save(picture("water", 77).resize((96, 80)), folder / "unlabeled/large.png")
    check = examine(folder)
    assert check.works
    assert len(remark(check, "copies").files) == 3
    two = {"labeled/brick/0.png", "labeled/grass/wrong.png"}
    assert set(remark(check, "two labels").files) == two
    assert set(remark(check, "test copies").files) == {*two, "unlabeled/copy.bmp"}
    assert "left out" in remark(check, "test copies").sentence()
    assert set(remark(check, "near copies").files) == {"test/water/77.png", "unlabeled/large.png"}
    assert remark(check, "near test copies").files == ("test/water/77.png",)


@pytest.mark.parametrize("mode", ["RGBA", "P", "L", "LA", "I;16"])
def test_copies_in_another_mode_are_found_as_training_finds_them(folder: Path, mode: str) -> None:
    for number in range(4):
        path = folder / f"labeled/brick/{number}.png"
        image = picture("brick", number).quantize(16)
        if mode not in ("RGBA", "P"):
            image = image.convert("L")
        save(image.convert("RGB"), path)
        if mode == "I;16":
            deep = Image.fromarray(np.asarray(image).astype(np.uint16) * 257)
            save(deep, folder / f"test/brick/{number}.png")
        else:
            save(image.convert(mode), folder / f"test/brick/{number}.png")
    files = {f"labeled/brick/{number}.png" for number in range(4)}
    assert set(remark(examine(folder), "test copies").files) == files
    source = data.load(str(folder))
    notes = "\n".join(prepared(SemiDataset.of(source)).notes)
    assert "4 training pictures are also in the test" in notes


def test_a_class_that_is_all_in_the_test(folder: Path) -> None:
    for path in (folder / "labeled/brick").iterdir():
        save(Image.open(path), folder / "test/brick" / path.name)
    check = examine(folder)
    assert not check.works and "'brick'" in remark(check, "lost class").words


def test_strangers_and_uneven_classes(folder: Path) -> None:
    save(stranger(0), folder / "unlabeled/noise.png")
    for i in range(12):
        save(picture("brick", 900 + i), folder / f"labeled/brick/more{i}.png")
    check = examine(folder)
    assert remark(check, "strangers").files == ("unlabeled/noise.png",)
    assert "3.0 times" in remark(check, "imbalance").words and check.imbalance == 3.0


def broken_unlabeled(folder: Path) -> None:
    (folder / "unlabeled/empty.png").write_bytes(b"")
    (folder / "unlabeled/page.jpg").write_text("<html>not found</html>")
    whole = (folder / "unlabeled/b0.jpg").read_bytes()
    (folder / "unlabeled/half.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "unlabeled/link.png").symlink_to(folder / "nowhere.png")


def broken_labeled(folder: Path) -> None:
    (folder / "labeled/brick/empty.png").write_bytes(b"")


def mostly_broken(folder: Path) -> None:
    for i in range(40):
        (folder / f"unlabeled/broken{i}.png").write_bytes(b"x")


def one_class(folder: Path) -> None:
    for kind in ("brick", "grass"):
        for path in (folder / "labeled" / kind).iterdir():
            path.unlink()
        (folder / "labeled" / kind).rmdir()


def empty_class(folder: Path) -> None:
    (folder / "labeled/nothing").mkdir()


def stray_class(folder: Path) -> None:
    save(picture("brick", 3), folder / "test/marble/0.png")


def odd_formats(folder: Path) -> None:
    depth = np.arange(48 * 40, dtype=np.uint16).reshape(40, 48) * 30
    save(Image.fromarray(depth), folder / "unlabeled/deep.png")
    save(picture("brick", 1).convert("CMYK"), folder / "unlabeled/print.jpg")
    save(picture("brick", 2).convert("P"), folder / "unlabeled/palette.gif")
    save(picture("brick", 4).resize((1, 1)), folder / "unlabeled/dot.png")
    save(picture("brick", 5).convert("RGBA"), folder / "unlabeled/ä very long name 🌱.png")
    (folder / "unlabeled/.DS_Store").write_bytes(b"x")


FAULTS: list[tuple[Callable[[Path], None], str | None]] = [
    (broken_unlabeled, "unreadable"),
    (broken_labeled, "unreadable"),
    (mostly_broken, "unreadable"),
    (one_class, "classes"),
    (empty_class, "empty class"),
    (stray_class, "stray class"),
    (odd_formats, None),
]


@pytest.mark.parametrize("fault,kind", FAULTS, ids=lambda x: getattr(x, "__name__", ""))
def test_refused_exactly_when_training_refuses(
    folder: Path, fault: Callable[[Path], None], kind: str | None
) -> None:
    fault(folder)
    before = contents(folder)
    check = examine(folder)
    if kind is not None:
        assert remark(check, kind).blocks is not check.works
    try:
        data.load(str(folder))
        loads = True
    except UserError:
        loads = False
    assert check.works is loads
    assert contents(folder) == before
    json.dumps(check.as_dict())


def test_all_unlabeled_pictures_foreign(folder: Path) -> None:
    for path in (folder / "unlabeled").iterdir():
        path.unlink()
    assert remark(examine(folder), "unlabeled").then.startswith("only the labeled")
    for seed in range(9):
        save(stranger(seed), folder / f"unlabeled/{seed}.png")
    check = examine(folder)
    assert remark(check, "strangers").words.startswith("WARNING, 100%") and check.works


def test_one_label_per_class_and_many_classes(tmp_path: Path) -> None:
    for code in range(60):
        save(picture("brick", code), tmp_path / "own" / "labeled" / f"class {code}" / "only.png")
    check = examine(tmp_path / "own")
    assert check.works and len(check.classes) == 60 and list(check.classes)[2] == "class 2"
    assert remark(check, "few labels").words.startswith("60 classes with fewer than 4 labels")


def test_a_decompression_bomb_is_not_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(picture("brick", 1, (300, 300)), folder / "unlabeled/bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)
    assert remark(examine(folder), "unreadable").files == ("unlabeled/bomb.png",)


def test_counts_what_cannot_be_read(folder: Path) -> None:
    broken_unlabeled(folder)
    check = examine(folder)
    found = remark(check, "unreadable")
    assert sorted(found.files) == [f"unlabeled/{n}" for n in ("empty.png", "half.jpg", "link.png",
                                                             "page.jpg")]  # fmt: skip
    assert found.words.startswith("WARNING, 10%") and check.unlabeled == 36


def test_what_is_no_picture_or_lies_elsewhere_is_said(folder: Path) -> None:
    for name in ("labeled/brick/notes.txt", "unlabeled/a.heic", "unlabeled/Thumbs.db", "list.ods"):
        (folder / name).write_text("?")
    save(picture("brick", 8), folder / "unlabled/8.png")
    save(picture("brick", 9), folder / "labeled/9.png")
    check = examine(folder)
    assert check.works and check.unlabeled == 36
    found = remark(check, "no pictures")
    assert found.sentence() == "2 files, no pictures by name (.txt 1, .heic 1): left out"
    assert found.files == ("labeled/brick/notes.txt", "unlabeled/a.heic")
    assert found.sentence() in data.load(str(folder)).notes  # the very words of training
    found = remark(check, "outside")
    assert found.words.startswith("2 pictures in no folder") and found.then == "left out"
    assert found.files == ("labeled/9.png", "unlabled/8.png")


def test_a_damaged_orientation_is_no_damaged_picture(folder: Path) -> None:
    before = len(data.load(str(folder)).images)
    picture("brick", 5).save(folder / "labeled/brick/odd.jpg", exif=b"Exif\0\0garbage!!")
    assert examine(folder).works
    assert len(data.load(str(folder)).images) == before + 1


def test_contradicting_lines_of_a_csv(folder: Path) -> None:
    lines = ["path,label", "labeled/brick/0.png,brick", "labeled/grass/0.png,grass"]
    table = folder / "list.csv"
    table.write_text("\n".join([*lines, "labeled/brick/0.png,grass"]))
    assert remark(examine(table), "contradiction").blocks
    table.write_text("\n".join([*lines, "unlabeled/b1.jpg,"]))
    assert examine(table).works


def test_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, (30, 12, 12, 3), np.uint8)
    y = np.array([0, 1] * 10 + [-1] * 10)
    x[25] = x[0]
    x[3] = x[2]
    source = data.from_arrays(x, y, x[:1], np.array([0]))
    check = examine_source(source)
    assert remark(check, "two labels").files == ("image 2", "image 3")
    assert remark(check, "test copies").files == ("image 0", "image 25")
    assert check.classes == {"0": 10, "1": 10} and check.unlabeled == 10


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    stats = {str(path): os.lstat(path) for path in folder.rglob("*")}
    return {name: (found.st_size, found.st_mtime_ns) for name, found in stats.items()}
