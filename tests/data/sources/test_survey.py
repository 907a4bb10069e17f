"""The survey lists the same pictures as loading does."""

from pathlib import Path

import pytest

from fullmatch import data
from fullmatch.data.sources.folders import describe_skipped, find_pictures_outside
from fullmatch.data.sources.survey import survey_pictures
from fullmatch.errors import UserError
from tests.own_pictures import picture, save

LAYOUTS = {
    "three parts": ("labeled/a/1", "labeled/b/2", "unlabeled/deep/3", "test/a/4"),
    "classes at the top": ("a/1", "b/deep/2", "unlabeled/3", "_unlabeled/4"),
    "a class called test": ("a/1", "test/2", "unlabelled/3"),
    "unlabeled within": ("Labelled/a/1", "Labelled/b/2", "Labelled/unlabeled/3"),
    "unknown and loose": ("labeled/a/1", "labeled/b/2", "labeled/3", "other/a/4", "5", "test/a/6"),
    "test of classes": ("a/1", "b/2", "test/a/3", "test/4", ".hidden/a/5"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_folders_agree_with_loading(tmp_path: Path, layout: str) -> None:
    for seed, name in enumerate(LAYOUTS[layout]):
        save(picture("brick", seed), tmp_path / f"{name}.png")
    survey, loaded = survey_pictures(tmp_path), data.load(str(tmp_path))
    assert sorted({label for _, label in survey.labeled}) == sorted(loaded.classes)
    assert len(survey.labeled) == int((loaded.labels >= 0).sum())
    assert len(survey.unlabeled) == int((loaded.labels < 0).sum())
    assert len(survey.test) == (len(loaded.test) if loaded.test is not None else 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_skipped_files_agree_with_loading(tmp_path: Path, layout: str) -> None:
    for seed, name in enumerate(LAYOUTS[layout]):
        path = save(picture("brick", seed), tmp_path / f"{name}.png")
        for clutter in ("notes.txt", ".DS_Store", "Thumbs.db"):
            (path.parent / clutter).write_text("?")
    (tmp_path / "unlabeled").mkdir(exist_ok=True)
    (tmp_path / "unlabeled/README").write_text("?")
    survey, loaded = survey_pictures(tmp_path), data.load(str(tmp_path))
    (note,) = [note for note in loaded.notes if "non-picture file" in note]
    assert note == f"{describe_skipped(survey.skipped)}: left out"
    used = len(loaded.images) + (len(loaded.test) if loaded.test is not None else 0)
    visible = [name for name in LAYOUTS[layout] if not name.startswith(".")]
    assert len(find_pictures_outside(survey)) == len(visible) - used


LINKS = {  # from, to
    "a class kept elsewhere": ("labeled/c", "../all/c"),
    "all are unlabeled too": ("unlabeled", "labeled"),
    "a class among the unlabeled": ("heap/again", "../labeled/a"),
    "everything": ("unlabeled", "."),
}


@pytest.mark.parametrize("link", LINKS)
def test_links_lead_where_loading_goes(tmp_path: Path, link: str) -> None:
    for seed, name in enumerate(("labeled/a/1", "labeled/b/2", "all/c/3", "heap/4")):
        save(picture("brick", seed), tmp_path / f"{name}.png")
    (tmp_path / LINKS[link][0]).symlink_to(LINKS[link][1])
    if link == "a class among the unlabeled":
        (tmp_path / "heap").rename(tmp_path / "unlabeled")
    survey, loaded = survey_pictures(tmp_path), data.load(str(tmp_path))
    assert len(survey.labeled) == int((loaded.labels >= 0).sum())
    assert len(survey.unlabeled) == int((loaded.labels < 0).sum())
    assert sorted({label for _, label in survey.labeled}) == sorted(loaded.classes)
    assert not survey.empty_classes
    used = {Path(path).resolve() for path, _, _ in survey.items()}
    assert not used & {Path(path).resolve() for path in find_pictures_outside(survey)}


def test_one_name_in_two_unicode_forms(tmp_path: Path) -> None:
    for seed, name in enumerate(("Caf\u00e9", "Cafe\u0301", "tea")):
        save(picture("brick", seed), tmp_path / "labeled" / name / "1.png")
    if len(list((tmp_path / "labeled").iterdir())) == 3:  # else the file system merged them
        for read in (survey_pictures, lambda path: data.load(str(path))):
            with pytest.raises(UserError, match="two folders called"):
                read(tmp_path)


def test_a_picture_outside_the_parts_is_reported_by_both(tmp_path: Path) -> None:
    for seed, name in enumerate(("labeled/a/1", "labeled/b/2", "3")):
        save(picture("brick", seed), tmp_path / f"{name}.png")
    assert find_pictures_outside(survey_pictures(tmp_path)) == [str(tmp_path / "3.png")]
    assert any("1 picture directly in" in note for note in data.load(str(tmp_path)).notes)


def test_the_test_part_is_the_folder_with_subfolders(tmp_path: Path) -> None:
    for seed, name in enumerate(("a/1", "b/2", "Test/3", "test/a/4")):
        save(picture("brick", seed), tmp_path / f"{name}.png")
    survey, loaded = survey_pictures(tmp_path), data.load(str(tmp_path))
    assert len(survey.test) == 1
    assert loaded.test is not None
    assert len(loaded.test) == 1
    assert sorted(loaded.classes) == ["Test", "a", "b"]


@pytest.mark.parametrize(
    ("row", "message"),
    [("2.png,a,val", "split is 'val'"), (",a,", "no path"), ("2.png,,test", "a test picture")],
)
def test_an_invalid_row_is_rejected_by_both(tmp_path: Path, row: str, message: str) -> None:
    for seed in range(3):
        save(picture("brick", seed), tmp_path / f"{seed}.png")
    table = tmp_path / "list.csv"
    table.write_text(f"path,label,split\n0.png,a,\n1.png,b,\n{row}\n")
    for read in (survey_pictures, lambda path: data.load(str(path))):
        with pytest.raises(UserError, match=f"line 4: {message}"):
            read(table)


def test_a_picture_listed_with_and_without_its_label_has_it(tmp_path: Path) -> None:
    for seed in range(3):
        save(picture("brick", seed), tmp_path / f"{seed}.png")
    table = tmp_path / "list.csv"
    table.write_text("path,label\n0.png,\n0.png,a\n1.png,b\n1.png,\n2.png,\n")
    survey, loaded = survey_pictures(table), data.load(str(table))
    assert [label for _, label in survey.labeled] == ["a", "b"]
    assert not survey.conflicts
    assert len(survey.unlabeled) == int((loaded.labels < 0).sum()) == 1


def test_csv_agrees_with_loading(tmp_path: Path) -> None:
    for seed in range(5):
        save(picture("brick", seed), tmp_path / f"{seed}.png")
    rows = ("path,label,split", "0.png,a,", "1.png,b,train", "2.png,-1,", "3.png,,", "4.png,a,test")
    (tmp_path / "list.csv").write_text("\ufeff" + "\r\n".join(rows), encoding="utf-8")
    survey, loaded = survey_pictures(tmp_path / "list.csv"), data.load(str(tmp_path / "list.csv"))
    assert [label for _, label in survey.labeled] == list(loaded.classes)
    assert len(survey.unlabeled) == 2
    assert len(survey.test) == 1
    assert survey.conflicts == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "list.csv has no rows; add lines of path,label"),
        ("0.png,a,test", "no pictures to train on"),
    ],
)
def test_a_csv_with_nothing_to_train_on(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "list.csv").write_text(f"path,label,split\n{rows}\n")
    with pytest.raises(UserError, match=message) as error:
        survey_pictures(tmp_path / "list.csv")
    assert "labeled/<class>" not in str(error.value)
