"""`fullmatch suggest` as it is typed."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from cyclopts import App, CycloptsError

from fullmatch import data
from fullmatch.cli.commands.suggest import describe_choice, suggest
from fullmatch.data import Split
from fullmatch.errors import UserError
from fullmatch.inference.suggestion import Suggestion, Suggestions
from tests.full_disk import full_disk
from tests.own_pictures import clean_folder, picture, save
from tests.photos import photo, photo_folder
from tests.served import copy_run, digits_run, pets_run, shared_folder

app = App(result_action="return_value")
app.command(suggest)
PETS = ["contact-sheet.html", "labelstudio.json", "labelstudio.xml", "suggestions.csv"]


def run_suggest(*arguments: object) -> None:
    app(["suggest", *map(str, arguments)], exit_on_error=False, print_error=False)


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_own_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_suggest(pets_run(), "-n", 4, "--out", tmp_path / "next")
    assert sorted(path.name for path in (tmp_path / "next").iterdir()) == PETS
    rows = read_rows(tmp_path / "next" / "suggestions.csv")
    unlabeled = {str(path) for path in (shared_folder() / "pets" / "unlabeled").iterdir()}
    assert len(rows) == 4
    assert {row["path"] for row in rows} <= unlabeled
    text = capsys.readouterr().out
    assert "4 of 6 unlabeled pictures chosen." in text
    assert "fullmatch label" in text
    before = (tmp_path / "next" / "suggestions.csv").read_text()
    with pytest.raises(UserError, match="exists already"):
        run_suggest(pets_run(), "-n", 2, "--out", tmp_path / "next")
    assert (tmp_path / "next" / "suggestions.csv").read_text() == before
    run_suggest(pets_run(), "-n", 2, "--out", tmp_path / "next", "--overwrite")
    assert len(read_rows(tmp_path / "next" / "suggestions.csv")) == 2


@pytest.mark.usefixtures("capsys")
def test_can_be_repeated_after_a_full_disk(tmp_path: Path) -> None:
    run = pets_run()
    with full_disk(3000), pytest.raises(UserError, match=r"cannot write .*contact-sheet\.html"):
        run_suggest(run, "-n", 4, "--out", tmp_path)
    run_suggest(run, "-n", 4, "--out", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == PETS


def test_a_csv_file(tmp_path: Path) -> None:
    run = copy_run(pets_run(), tmp_path / "run")
    home = shared_folder() / "pets"
    shutil.copytree(home, tmp_path / "pets")
    lines = ["path,label", *(f"pets/labeled/cat | tiger/bild ä {i}.png,cat" for i in range(3))]
    lines += [f"pets/unlabeled/bild ä {i}.png," for i in range(6)]
    table = tmp_path / "pets.csv"
    table.write_text("\n".join(lines), encoding="utf-8")
    config = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(config.replace(str(home), str(table)), encoding="utf-8")
    run_suggest(run)
    rows = read_rows(run / "suggestions" / "suggestions.csv")
    assert {row["path"] for row in rows} == {
        str(tmp_path / "pets" / "unlabeled" / f"bild ä {i}.png") for i in range(6)
    }


def test_positions_in_a_benchmark(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="digits has no picture files; add --indices"):
        run_suggest(digits_run(), "--out", tmp_path)
    assert not list(tmp_path.iterdir())
    run_suggest(digits_run(), "--out", tmp_path, "--indices", "-n", 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == [PETS[0], PETS[3]]
    positions = {int(row["path"]) for row in read_rows(tmp_path / "suggestions.csv")}
    hidden = set(range(len(data.load("digits").images)))
    hidden -= set(Split.load(digits_run() / "split.json").labeled)
    assert len(positions) == 5
    assert positions <= hidden


def test_unreadable_pictures_are_not_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, home = copy_run(pets_run(), tmp_path / "run"), shared_folder() / "pets"
    shutil.copytree(home, tmp_path / "pets")
    for name in ("bad 1.png", "bad 2.png"):
        (tmp_path / "pets" / "unlabeled" / name).write_text("not a picture")
    config = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(
        config.replace(str(home), str(tmp_path / "pets")), encoding="utf-8"
    )
    run_suggest(run, "-n", 4)
    assert "4 of 6 unlabeled pictures chosen; 2 more cannot be read.\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sampled", "unreadable", "message"),
    [
        (8, 0, "4 of 8 unlabeled pictures chosen."),
        (8, 2, "4 of 6 unlabeled pictures chosen; 2 more cannot be read."),
        (7, 0, "4 of 8 unlabeled pictures chosen; 7 were looked at."),
        (7, 2, "4 of 8 unlabeled pictures chosen; 7 were looked at, of which 2 cannot be read."),
    ],
)
def test_summary_of_the_choice(sampled: int, unreadable: int, message: str) -> None:
    pictures = [Suggestion(f"{number}.png", "cat", 0.5, "") for number in range(4)]
    assert describe_choice(Suggestions(pictures, sampled, unreadable, ""), total=8) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0"], "0 is too small, expected 1 or more"),
        (["-n", "-3"], "-3 is too small"),
        (["-n", "1.5"], "'1.5' is not an integer"),
        (["--out", "file"], "file is a file; name a folder with --out"),
        (["--out", "file/below"], "cannot write file/below"),
    ],
)
def test_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises((UserError, CycloptsError), match=message):
        run_suggest(pets_run(), *arguments)


@pytest.mark.parametrize("name", ["gone", "gone.csv", "gone.npz"])
def test_missing_pictures(tmp_path: Path, name: str) -> None:
    run = copy_run(pets_run(), tmp_path / "run")
    config = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(
        config.replace(str(shared_folder() / "pets"), str(tmp_path / name)), encoding="utf-8"
    )
    with pytest.raises(UserError, match=rf"{name}, which .* was trained on, is gone"):
        run_suggest(run)


def test_pictures_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = photo_folder(tmp_path / "photos", labels=2, unlabeled=8)
    save(photo("sky", 1), home / "unlabeled/sky.png")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    run_suggest(home, "-n", 6)
    assert sorted(path.name for path in Path("suggestions").iterdir()) == PETS
    rows = read_rows(Path("suggestions/suggestions.csv"))
    assert len(rows) == 6
    assert any(row["path"].endswith("sky.png") for row in rows)
    assert all(row["guess"] == row["confidence"] == row["label"] == "" for row in rows)
    text = capsys.readouterr().out
    assert "6 of 17 unlabeled pictures chosen." in text
    assert "Chosen by features of timm:" in text
    assert f"fullmatch label {home} -n 6" in text
    tasks = json.loads(Path("suggestions/labelstudio.json").read_text())
    assert [task["predictions"] for task in tasks] == [[]] * 6
    assert "typical of many pictures" in Path("suggestions/contact-sheet.html").read_text()
    with pytest.raises(UserError, match="exists already"):
        run_suggest(home)


def test_errors_before_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = clean_folder(tmp_path / "own", labels=1, unlabeled=1)
    monkeypatch.chdir(home)
    with pytest.raises(UserError, match="inside your folder of pictures"):
        run_suggest(".")
    with pytest.raises(UserError, match="leave it out"):
        run_suggest(".", "--indices")
    for path in (home / "unlabeled").iterdir():
        path.unlink()
    with pytest.raises(UserError, match="no unlabeled pictures"):
        run_suggest(".", "--out", tmp_path / "out")
    with pytest.raises(UserError, match="is not a run folder"):
        run_suggest(tmp_path / "gone")


def test_small_pictures_before_the_first_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loose = tmp_path / "loose"
    for seed in range(4):
        save(picture("brick", seed), loose / f"{seed}.png")
    run_suggest(loose, "--out", tmp_path / "out")
    text = capsys.readouterr().out
    assert "Chosen by color: features need color pictures of at least 64 pixels." in text
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        name
        for name in PETS
        if name != "labelstudio.xml"  # there are no classes yet
    ]
