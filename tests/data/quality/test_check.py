"""Every problem is reported, and blocks exactly when training would not start."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fullmatch import data
from fullmatch.data import SemiDataset
from fullmatch.data.quality.check import check_pictures, check_source
from fullmatch.data.quality.cleaning import clean_dataset
from fullmatch.data.quality.data_check import DataCheck
from fullmatch.data.quality.findings import DataFinding, FindingKind
from fullmatch.errors import UserError
from tests.own_pictures import clean_folder, outlier, picture, save


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return clean_folder(tmp_path / "own")


def finding(check: DataCheck, kind: FindingKind) -> DataFinding:
    (only,) = [one for one in check.findings if one.kind == kind]
    return only


def test_a_clean_folder_has_no_findings(folder: Path) -> None:
    totals: list[int] = []
    check = check_pictures(folder, totals.append)
    assert check.findings == ()
    assert check.can_train
    assert check.classes == {"brick": 6, "grass": 6, "water": 6}
    assert check.unlabeled == 36
    assert (check.side, check.channels, check.test) == (32, 3, {})
    assert check.sizes == {"smallest": (48, 40), "largest": (48, 40)}
    assert totals == [54] * 54


def test_duplicates_of_every_kind(folder: Path) -> None:
    first = folder / "labeled/brick/0.png"
    image = Image.open(first)
    save(image, folder / "unlabeled/copy.bmp")
    save(image, folder / "labeled/grass/wrong.png")
    save(image, folder / "test/brick/leak.png")
    save(picture("water", 77), folder / "test/water/77.png")
    save(picture("water", 77).resize((96, 80)), folder / "unlabeled/large.png")
    check = check_pictures(folder)
    assert check.can_train
    assert len(finding(check, FindingKind.EXACT_DUPLICATES).files) == 3
    two = {"labeled/brick/0.png", "labeled/grass/wrong.png"}
    assert set(finding(check, FindingKind.CONFLICTING_LABELS).files) == two
    assert set(finding(check, FindingKind.TEST_DUPLICATES).files) == {*two, "unlabeled/copy.bmp"}
    assert "left out" in finding(check, FindingKind.TEST_DUPLICATES).sentence()
    assert set(finding(check, FindingKind.NEAR_DUPLICATES).files) == {
        "test/water/77.png",
        "unlabeled/large.png",
    }
    assert finding(check, FindingKind.NEAR_TEST_DUPLICATES).files == ("test/water/77.png",)


@pytest.mark.parametrize("mode", ["RGBA", "P", "L", "LA", "I;16"])
def test_duplicates_in_another_mode_are_the_same_as_in_training(folder: Path, mode: str) -> None:
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
    assert set(finding(check_pictures(folder), FindingKind.TEST_DUPLICATES).files) == files
    source = data.load(str(folder))
    notes = "\n".join(clean_dataset(SemiDataset.from_source(source)).notes)
    assert "4 training pictures are also in the test set" in notes


def test_a_class_whose_pictures_are_all_in_the_test_set(folder: Path) -> None:
    for path in (folder / "labeled/brick").iterdir():
        save(Image.open(path), folder / "test/brick" / path.name)
    check = check_pictures(folder)
    assert not check.can_train
    assert "'brick'" in finding(check, FindingKind.LOST_CLASS).problem


def test_outliers_and_imbalanced_classes(folder: Path) -> None:
    save(outlier(0), folder / "unlabeled/noise.png")
    for i in range(12):
        save(picture("brick", 900 + i), folder / f"labeled/brick/more{i}.png")
    check = check_pictures(folder)
    assert finding(check, FindingKind.OUTLIERS).files == ("unlabeled/noise.png",)
    assert "3.0 times" in finding(check, FindingKind.IMBALANCE).problem
    assert check.imbalance == 3.0


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


def unknown_test_class(folder: Path) -> None:
    save(picture("brick", 3), folder / "test/marble/0.png")


def odd_formats(folder: Path) -> None:
    depth = np.arange(48 * 40, dtype=np.uint16).reshape(40, 48) * 30
    save(Image.fromarray(depth), folder / "unlabeled/deep.png")
    save(picture("brick", 1).convert("CMYK"), folder / "unlabeled/print.jpg")
    save(picture("brick", 2).convert("P"), folder / "unlabeled/palette.gif")
    save(picture("brick", 4).resize((1, 1)), folder / "unlabeled/dot.png")
    save(picture("brick", 5).convert("RGBA"), folder / "unlabeled/ä very long name 🌱.png")
    (folder / "unlabeled/.DS_Store").write_bytes(b"x")


PROBLEMS: list[tuple[Callable[[Path], None], FindingKind | None]] = [
    (broken_unlabeled, FindingKind.UNREADABLE),
    (broken_labeled, FindingKind.UNREADABLE),
    (mostly_broken, FindingKind.UNREADABLE),
    (one_class, FindingKind.TOO_FEW_CLASSES),
    (empty_class, FindingKind.EMPTY_CLASS),
    (unknown_test_class, FindingKind.UNKNOWN_TEST_CLASS),
    (odd_formats, None),
]


@pytest.mark.parametrize(("cause", "kind"), PROBLEMS, ids=lambda x: getattr(x, "__name__", ""))
def test_blocked_exactly_when_training_would_not_start(
    folder: Path, cause: Callable[[Path], None], kind: FindingKind | None
) -> None:
    cause(folder)
    before = contents(folder)
    check = check_pictures(folder)
    if kind is not None:
        assert finding(check, kind).blocks_training is not check.can_train
    try:
        data.load(str(folder))
        loads = True
    except UserError:
        loads = False
    assert check.can_train is loads
    assert contents(folder) == before
    json.dumps(check.to_json())


def test_all_unlabeled_pictures_are_outliers(folder: Path) -> None:
    for path in (folder / "unlabeled").iterdir():
        path.unlink()
    missing = finding(check_pictures(folder), FindingKind.NO_UNLABELED)
    assert missing.consequence == "training uses only the labeled ones"
    for seed in range(9):
        save(outlier(seed), folder / f"unlabeled/{seed}.png")
    check = check_pictures(folder)
    outliers = finding(check, FindingKind.OUTLIERS)
    assert outliers.problem.startswith("WARNING: 9 unlabeled pictures (100%) unlike")
    assert outliers.consequence.endswith("or train with --algorithm iomatch")
    assert check.can_train


def test_a_method_for_unknown_pictures_is_suggested_only_for_many(folder: Path) -> None:
    usual = len(list((folder / "unlabeled").iterdir()))
    for count in range(1, usual):
        save(outlier(count), folder / f"unlabeled/noise{count}.png")
        outliers = finding(check_pictures(folder), FindingKind.OUTLIERS)
        assert len(outliers.files) == count
        assert ("iomatch" in outliers.consequence) is (count / (usual + count) >= 0.2)


def test_one_label_per_class_and_many_classes(tmp_path: Path) -> None:
    for code in range(60):
        save(picture("brick", code), tmp_path / "own" / "labeled" / f"class {code}" / "only.png")
    check = check_pictures(tmp_path / "own")
    assert check.can_train
    assert len(check.classes) == 60
    assert list(check.classes)[2] == "class 2"
    few = finding(check, FindingKind.FEW_LABELS)
    assert few.problem.startswith("60 classes with fewer than 4 labels")


def test_a_decompression_bomb_is_not_opened(folder: Path) -> None:
    bomb = folder / "unlabeled/bomb.png"
    Image.new("1", (20_000, 20_000)).save(bomb)
    assert bomb.stat().st_size < 100_000  # of 400 million pixels
    assert finding(check_pictures(folder), FindingKind.UNREADABLE).files == ("unlabeled/bomb.png",)


def test_unreadable_pictures_are_counted(folder: Path) -> None:
    broken_unlabeled(folder)
    check = check_pictures(folder)
    unreadable = finding(check, FindingKind.UNREADABLE)
    names = ("empty.png", "half.jpg", "link.png", "page.jpg")
    assert sorted(unreadable.files) == [f"unlabeled/{name}" for name in names]
    assert unreadable.problem == "WARNING: 4 unlabeled pictures (10%) cannot be read"
    assert check.unlabeled == 36


def test_other_files_and_misplaced_pictures_are_reported(folder: Path) -> None:
    for name in ("labeled/brick/notes.txt", "unlabeled/a.heic", "unlabeled/Thumbs.db", "list.ods"):
        (folder / name).write_text("?")
    save(picture("brick", 8), folder / "unlabled/8.png")
    save(picture("brick", 9), folder / "labeled/9.png")
    check = check_pictures(folder)
    assert check.can_train
    assert check.unlabeled == 36
    others = finding(check, FindingKind.NOT_PICTURES)
    assert others.sentence() == "2 non-picture files (.txt 1, .heic 1): left out"
    assert others.files == ("labeled/brick/notes.txt", "unlabeled/a.heic")
    assert others.sentence() in data.load(str(folder)).notes  # the same sentence as in training
    outside = finding(check, FindingKind.OUTSIDE)
    assert outside.problem.startswith("2 pictures in neither")
    assert outside.consequence == "left out"
    assert outside.files == ("labeled/9.png", "unlabled/8.png")


def test_damaged_exif_does_not_make_a_picture_unreadable(folder: Path) -> None:
    before = len(data.load(str(folder)).images)
    picture("brick", 5).save(folder / "labeled/brick/odd.jpg", exif=b"Exif\0\0garbage!!")
    assert check_pictures(folder).can_train
    assert len(data.load(str(folder)).images) == before + 1


def test_conflicting_rows_of_a_csv(folder: Path) -> None:
    lines = ["path,label", "labeled/brick/0.png,brick", "labeled/grass/0.png,grass"]
    table = folder / "list.csv"
    table.write_text("\n".join([*lines, "labeled/brick/0.png,grass"]))
    assert finding(check_pictures(table), FindingKind.CONFLICTING_ROWS).blocks_training
    table.write_text("\n".join([*lines, "unlabeled/b1.jpg,"]))
    assert check_pictures(table).can_train


def test_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, (30, 12, 12, 3), np.uint8)
    y = np.array([0, 1] * 10 + [-1] * 10)
    x[25] = x[0]
    x[3] = x[2]
    source = data.from_arrays(x, y, x[:1], np.array([0]))
    check = check_source(source)
    assert finding(check, FindingKind.CONFLICTING_LABELS).files == ("image 2", "image 3")
    assert finding(check, FindingKind.TEST_DUPLICATES).files == ("image 0", "image 25")
    assert check.classes == {"0": 10, "1": 10}
    assert check.unlabeled == 10


def test_the_format_of_check_json(folder: Path) -> None:
    save(outlier(0), folder / "unlabeled/noise.png")
    content = json.loads(json.dumps(check_pictures(folder).to_json()))
    assert list(content) == [
        *("name", "classes", "unlabeled", "test", "sizes", "side", "channels"),
        *("remarks", "works", "imbalance", "features"),
    ]
    (entry,) = content["remarks"]
    assert list(entry) == ["kind", "words", "then", "files", "blocks", "notes", "groups"]
    assert entry["kind"] == "strangers"
    assert entry["files"] == ["unlabeled/noise.png"]
    assert content["works"] is True
    assert entry["blocks"] is False


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    stats = {str(path): os.lstat(path) for path in folder.rglob("*")}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}
