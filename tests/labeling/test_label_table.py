"""The label table can be used for training at any time, and is never half written."""

import csv
import os
from pathlib import Path

import pytest

from fullmatch import data
from fullmatch.errors import UserError
from fullmatch.labeling.label_table import (
    LabelTable,
    default_table,
    list_pictures,
    parse_class_name,
)
from tests.own_pictures import clean_folder, picture, save


def open_table(home: Path, out: Path | None = None) -> LabelTable:
    return LabelTable(out or default_table(home), list_pictures(home))


def read_rows(path: Path) -> dict[str, tuple[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["path"]: (row["label"], row["split"]) for row in csv.DictReader(file)}


def test_the_table_can_be_used_for_training(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=2, unlabeled=3, test=2, size=16)
    table = open_table(home)
    assert table.classes == ["brick", "grass", "water"]
    assert len(table.unlabeled()) == 9
    assert not (tmp_path / "labels.csv").exists()
    table.set_label(str(home / "unlabeled" / "b1.jpg"), "brick")
    rows = read_rows(tmp_path / "labels.csv")
    assert len(rows) == 6 + 9 + 6
    assert rows["pets/labeled/grass/0.png"] == ("grass", "")
    assert rows["pets/unlabeled/b1.jpg"] == ("brick", "")
    assert rows["pets/unlabeled/b2.jpg"] == ("", "")
    assert rows["pets/test/water/1.png"] == ("water", "test")
    source = data.load(str(tmp_path / "labels.csv"))
    assert source.classes == ("brick", "grass", "water")
    assert (source.labels >= 0).sum() == 7
    assert len(source.images) == 15
    assert source.test is not None
    assert len(source.test) == 6


def test_pictures_without_labels(tmp_path: Path) -> None:
    for i in range(3):
        save(picture("grass", i), tmp_path / "heap" / f"{i}.png")
    table = open_table(tmp_path / "heap")
    assert table.classes == []
    assert len(table.unlabeled()) == 3


def test_loose_pictures_and_empty_classes(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1)
    save(picture("grass", 77), home / "loose.png")
    (home / "labeled" / "air").mkdir()
    table = open_table(home)
    assert table.classes == ["air", "brick", "grass", "water"]
    assert str(home / "loose.png") in table.unlabeled()
    assert len(table.unlabeled()) == 4


def test_continues_an_existing_table(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2)
    first = open_table(home)
    name = first.unlabeled()[0]
    first.set_label(name, "owl")
    again = open_table(home)
    assert "owl" in again.classes
    assert name not in again.unlabeled()
    again.set_label(name, "")
    assert len(open_table(home).unlabeled()) == 6
    on_itself = open_table(tmp_path / "labels.csv")
    assert on_itself.path == tmp_path / "labels.csv"
    assert len(on_itself.unlabeled()) == 6
    on_itself.set_label(on_itself.unlabeled()[0], "owl")
    assert len(read_rows(tmp_path / "labels.csv")) == 9


def test_an_edited_table_wins_over_the_folders(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=2, unlabeled=1, test=1, size=16)
    path = tmp_path / "labels.csv"
    open_table(home).set_label(str(home / "unlabeled" / "b0.jpg"), "brick")
    text = path.read_text()
    for before, after in (
        ("pets/labeled/brick/0.png,brick,", "pets/labeled/brick/0.png,brick,test"),
        ("pets/labeled/grass/0.png,grass,", "pets/labeled/grass/0.png,,"),
        ("pets/test/water/0.png,water,test", "pets/test/water/0.png,water,"),
    ):
        assert text.count(f"{before}\n") == 1
        text = text.replace(f"{before}\n", f"{after}\n")
    path.write_text(text)
    table = open_table(home)
    assert str(home / "labeled" / "grass" / "0.png") in table.unlabeled()
    table.set_label(str(home / "unlabeled" / "w0.jpg"), "water")
    expected = text.replace("pets/unlabeled/w0.jpg,,\n", "pets/unlabeled/w0.jpg,water,\n")
    assert path.read_text() == expected != text


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("pets/unlabeled/b0.jpg,,test", "line 2: a test picture needs a label"),
        ("pets/unlabeled/b0.jpg,grass,tset", "line 2: split is 'tset'; write test or train"),
        ("pets/unlabeled/b0.jpg,a,\npets/unlabeled/b0.jpg,b,", "line 3: .* is labeled 'a' and 'b'"),
    ],
)
def test_an_edited_table_with_errors(tmp_path: Path, row: str, message: str) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1, size=16)
    (tmp_path / "labels.csv").write_text(f"path,label,split\n{row}\n")
    with pytest.raises(UserError, match=message):
        open_table(home)
    (tmp_path / "labels.csv").write_text("path,label,split\n")
    assert len(open_table(home).unlabeled()) == 3  # an empty table changes nothing


def test_paths_are_absolute_in_another_folder(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1)
    (tmp_path / "out").mkdir()
    table = open_table(home, tmp_path / "out" / "mine.csv")
    table.set_label(table.unlabeled()[0], "grass")
    assert all(os.path.isabs(path) for path in read_rows(tmp_path / "out" / "mine.csv"))
    assert len(data.load(str(tmp_path / "out" / "mine.csv")).images) == 6


def test_missing_and_unknown_pictures(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2)
    table = open_table(home)
    table.set_label(table.unlabeled()[0], "grass")
    os.unlink(table.unlabeled()[-1])
    note = f"1 row of {tmp_path / 'labels.csv'} dropped: file not found"
    assert open_table(home).notes == [note]
    other = clean_folder(tmp_path / "birds", labels=1, unlabeled=1)
    before = (tmp_path / "labels.csv").read_bytes()
    with pytest.raises(UserError, match="is not in this data; name another file with --out"):
        open_table(other)
    assert (tmp_path / "labels.csv").read_bytes() == before


def test_a_table_with_other_columns_is_not_overwritten(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1)
    (tmp_path / "labels.csv").write_text("path,label,price\n")
    with pytest.raises(UserError, match="column 'price' that would be lost"):
        open_table(home)


def test_changes_by_another_program_are_not_overwritten(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2)
    one, two = open_table(home), open_table(home)
    name = one.unlabeled()[0]
    one.set_label(name, "grass")
    with pytest.raises(UserError, match="changed by another program"):
        two.set_label(two.unlabeled()[1], "water")
    assert len(two.unlabeled()) == 6  # as before
    assert list(read_rows(tmp_path / "labels.csv").values()).count(("grass", "")) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "pets"]


def test_a_failed_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1)
    table = open_table(home)
    first, second, _ = table.unlabeled()
    table.set_label(first, "grass")
    before = (tmp_path / "labels.csv").read_bytes()

    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UserError, match="No space left on device"):
        table.set_label(second, "water")
    assert second in table.unlabeled()
    assert (tmp_path / "labels.csv").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "pets"]

    def fail_read_only(path: Path, *words: object, **more: object) -> None:
        raise OSError(30, "Read-only file system")

    for what in ("open", "unlink"):  # neither writing nor cleaning up works
        monkeypatch.setattr(Path, what, fail_read_only)
    with pytest.raises(UserError, match="Read-only file system"):
        table.set_label(second, "water")
    assert second in table.unlabeled()
    monkeypatch.undo()
    with pytest.raises(UserError, match="cannot write"):
        open_table(home, tmp_path / "no folder" / "x.csv").set_label(second, "water")


def test_imports_labels_from_another_table(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2)
    filled = tmp_path / "filled.csv"
    filled.write_text("path,label,guess\npets/unlabeled/b0.jpg,owl,x\npets/unlabeled/b1.jpg,,x\n")
    table = open_table(home)
    assert table.import_labels(filled) == 1
    assert "owl" in table.classes
    assert read_rows(tmp_path / "labels.csv")["pets/unlabeled/b0.jpg"] == ("owl", "")
    assert table.import_labels(filled) == 0
    filled.write_text("path,label\npets/gone.jpg,owl\n")
    with pytest.raises(UserError, match="not in this data"):
        table.import_labels(filled)


def test_file_names_that_are_not_utf8_are_left_out(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1)
    picture("grass", 5).save(home / "unlabeled" / "x.png")
    os.rename(home / "unlabeled" / "x.png", os.fsencode(home / "unlabeled") + b"/\xff.png")
    table = open_table(home)
    assert len(table.unlabeled()) == 3
    assert table.notes == ["1 picture left out: file name is not UTF-8"]


@pytest.mark.parametrize("typed", ["", " ", "-1", "NaN", "x" * 101, "a\0b", "\udcff"])
def test_invalid_class_names(typed: str) -> None:
    with pytest.raises(UserError):
        parse_class_name(typed)


def test_valid_class_names() -> None:
    assert parse_class_name("  dög \t 2 ") == "dög 2"
    assert parse_class_name('a,"b"') == 'a,"b"'


@pytest.mark.parametrize(("name", "message"), [("gone", "no such"), ("a.npz", "no picture files")])
def test_data_that_cannot_be_labeled(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "a.npz").write_text("")
    with pytest.raises(UserError, match=message):
        list_pictures(tmp_path / name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no pictures in"):
        list_pictures(tmp_path / "empty")
