"""The table of labels: training reads it at once, and it is never half written."""

import csv
import os
from pathlib import Path

import pytest

from fullmatch import data
from fullmatch.errors import UserError
from fullmatch.labeling.labels import Labels, class_name, pictures_of, table_of
from tests.own_pictures import clean_folder, picture, save


def labels_of(home: Path, out: Path | None = None) -> Labels:
    return Labels(table_of(home, out), pictures_of(home))


def rows_of(path: Path) -> dict[str, tuple[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["path"]: (row["label"], row["split"]) for row in csv.DictReader(file)}


def test_training_reads_the_table_as_it_is(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=2, unlabeled=3, test=2, size=16)
    labels = labels_of(home)
    assert labels.classes == ["brick", "grass", "water"]
    assert len(labels.unlabeled()) == 9 and not (tmp_path / "labels.csv").exists()
    labels.put(str(home / "unlabeled" / "b1.jpg"), "brick")
    rows = rows_of(tmp_path / "labels.csv")
    assert len(rows) == 6 + 9 + 6
    assert rows["pets/labeled/grass/0.png"] == ("grass", "")
    assert rows["pets/unlabeled/b1.jpg"] == ("brick", "")
    assert rows["pets/unlabeled/b2.jpg"] == ("", "")
    assert rows["pets/test/water/1.png"] == ("water", "test")
    source = data.load(str(tmp_path / "labels.csv"))
    assert source.classes == ("brick", "grass", "water")
    assert (source.labels >= 0).sum() == 7 and len(source.images) == 15
    assert source.test is not None and len(source.test) == 6


def test_a_heap_of_pictures_without_any_label(tmp_path: Path) -> None:
    for i in range(3):
        save(picture("grass", i), tmp_path / "heap" / f"{i}.png")
    labels = labels_of(tmp_path / "heap")
    assert labels.classes == [] and len(labels.unlabeled()) == 3


def test_pictures_beside_class_folders_and_empty_classes(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1)
    save(picture("grass", 77), home / "loose.png")
    (home / "labeled" / "air").mkdir()
    labels = labels_of(home)
    assert labels.classes == ["air", "brick", "grass", "water"]
    assert str(home / "loose.png") in labels.unlabeled() and len(labels.unlabeled()) == 4


def test_labels_go_on_where_they_were(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2)
    first = labels_of(home)
    name = first.unlabeled()[0]
    first.put(name, "owl")
    again = labels_of(home)
    assert "owl" in again.classes and name not in again.unlabeled()
    again.put(name, "")
    assert len(labels_of(home).unlabeled()) == 6
    on_itself = labels_of(tmp_path / "labels.csv")
    assert on_itself.table == tmp_path / "labels.csv" and len(on_itself.unlabeled()) == 6
    on_itself.put(on_itself.unlabeled()[0], "owl")
    assert len(rows_of(tmp_path / "labels.csv")) == 9


def test_an_edited_table_is_right(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=2, unlabeled=1, test=1, size=16)
    table = tmp_path / "labels.csv"
    labels_of(home).put(str(home / "unlabeled" / "b0.jpg"), "brick")
    text = table.read_text()
    for before, after in (
        ("pets/labeled/brick/0.png,brick,", "pets/labeled/brick/0.png,brick,test"),
        ("pets/labeled/grass/0.png,grass,", "pets/labeled/grass/0.png,,"),
        ("pets/test/water/0.png,water,test", "pets/test/water/0.png,water,"),
    ):
        assert text.count(f"{before}\n") == 1
        text = text.replace(f"{before}\n", f"{after}\n")
    table.write_text(text)
    labels = labels_of(home)
    assert str(home / "labeled" / "grass" / "0.png") in labels.unlabeled()
    labels.put(str(home / "unlabeled" / "w0.jpg"), "water")
    expected = text.replace("pets/unlabeled/w0.jpg,,\n", "pets/unlabeled/w0.jpg,water,\n")
    assert table.read_text() == expected != text


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("pets/unlabeled/b0.jpg,,test", "line 2: a test picture needs a label"),
        ("pets/unlabeled/b0.jpg,grass,tset", "line 2: split is 'tset'; write test or train"),
        ("pets/unlabeled/b0.jpg,a,\npets/unlabeled/b0.jpg,b,", "line 3: .* is labeled 'a' and 'b'"),
    ],
)
def test_an_edited_table_that_makes_no_sense(tmp_path: Path, row: str, message: str) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1, size=16)
    (tmp_path / "labels.csv").write_text(f"path,label,split\n{row}\n")
    with pytest.raises(UserError, match=message):
        labels_of(home)
    (tmp_path / "labels.csv").write_text("path,label,split\n")
    assert len(labels_of(home).unlabeled()) == 3  # nothing is said in it


def test_elsewhere_the_paths_are_whole(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1)
    (tmp_path / "out").mkdir()
    labels = labels_of(home, tmp_path / "out" / "mine.csv")
    labels.put(labels.unlabeled()[0], "grass")
    assert all(os.path.isabs(path) for path in rows_of(tmp_path / "out" / "mine.csv"))
    assert len(data.load(str(tmp_path / "out" / "mine.csv")).images) == 6


def test_pictures_that_went_away_or_are_others(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2)
    labels = labels_of(home)
    labels.put(labels.unlabeled()[0], "grass")
    os.unlink(labels.unlabeled()[-1])
    assert labels_of(home).notes == [
        f"1 pictures of {tmp_path / 'labels.csv'} are gone: their rows are dropped"
    ]
    other = clean_folder(tmp_path / "birds", labels=1, unlabeled=1)
    before = (tmp_path / "labels.csv").read_bytes()
    with pytest.raises(UserError, match="is not in this data; name another file with --out"):
        labels_of(other)
    assert (tmp_path / "labels.csv").read_bytes() == before


def test_a_table_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1)
    (tmp_path / "labels.csv").write_text("path,label,price\n")
    with pytest.raises(UserError, match="column 'price' that would be lost"):
        labels_of(home)


def test_what_another_program_wrote_meanwhile_is_kept(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2)
    one, two = labels_of(home), labels_of(home)
    name = one.unlabeled()[0]
    one.put(name, "grass")
    with pytest.raises(UserError, match="changed by another program"):
        two.put(two.unlabeled()[1], "water")
    assert len(two.unlabeled()) == 6  # as before
    assert list(rows_of(tmp_path / "labels.csv").values()).count(("grass", "")) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "pets"]


def test_a_failure_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1)
    labels = labels_of(home)
    first, second, _ = labels.unlabeled()
    labels.put(first, "grass")
    before = (tmp_path / "labels.csv").read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left on device"):
        labels.put(second, "water")
    assert second in labels.unlabeled() and (tmp_path / "labels.csv").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "pets"]

    def closed(path: Path, *words: object, **more: object) -> None:
        raise OSError(30, "Read-only file system")

    for what in ("open", "unlink"):  # neither can be written, nor tidied up
        monkeypatch.setattr(Path, what, closed)
    with pytest.raises(UserError, match="Read-only file system"):
        labels.put(second, "water")
    assert second in labels.unlabeled()
    monkeypatch.undo()
    with pytest.raises(UserError, match="cannot write"):
        labels_of(home, tmp_path / "no folder" / "x.csv").put(second, "water")


def test_labels_from_another_table(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=2)
    filled = tmp_path / "filled.csv"
    filled.write_text("path,label,guess\npets/unlabeled/b0.jpg,owl,x\npets/unlabeled/b1.jpg,,x\n")
    labels = labels_of(home)
    assert labels.take(filled) == 1 and "owl" in labels.classes
    assert rows_of(tmp_path / "labels.csv")["pets/unlabeled/b0.jpg"] == ("owl", "")
    assert labels.take(filled) == 0
    filled.write_text("path,label\npets/gone.jpg,owl\n")
    with pytest.raises(UserError, match="not in this data"):
        labels.take(filled)


def test_names_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "pets", labels=1, unlabeled=1)
    picture("grass", 5).save(home / "unlabeled" / "x.png")
    os.rename(home / "unlabeled" / "x.png", os.fsencode(home / "unlabeled") + b"/\xff.png")
    labels = labels_of(home)
    assert len(labels.unlabeled()) == 3
    assert labels.notes == ["1 pictures left out: their names are not UTF-8"]


@pytest.mark.parametrize("typed", ["", " ", "-1", "NaN", "x" * 101, "a\0b", "\udcff"])
def test_classes_that_cannot_be(typed: str) -> None:
    with pytest.raises(UserError):
        class_name(typed)


def test_classes_that_can() -> None:
    assert class_name("  dög \t 2 ") == "dög 2" and class_name('a,"b"') == 'a,"b"'


@pytest.mark.parametrize(("name", "message"), [("gone", "no such"), ("a.npz", "no picture files")])
def test_data_that_cannot_be_labeled(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "a.npz").write_text("")
    with pytest.raises(UserError, match=message):
        pictures_of(tmp_path / name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no pictures in"):
        pictures_of(tmp_path / "empty")
