"""`fullmatch suggest` as it is typed."""

import csv
import shutil
from pathlib import Path

import pytest
from cyclopts import App, CycloptsError

from fullmatch import data
from fullmatch.cli.commands.suggest import suggest
from fullmatch.data import Split
from fullmatch.errors import UserError
from tests.full_disk import full_disk
from tests.served import copied, digits_run, pets_run, shared_folder

app = App(result_action="return_value")
app.command(suggest)
PETS = ["contact-sheet.html", "labelstudio.json", "labelstudio.xml", "suggestions.csv"]


def typed(*words: object) -> None:
    app(["suggest", *map(str, words)], exit_on_error=False, print_error=False)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_own_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    typed(pets_run(), "-n", 4, "--out", tmp_path / "next")
    assert sorted(path.name for path in (tmp_path / "next").iterdir()) == PETS
    rows = rows_of(tmp_path / "next" / "suggestions.csv")
    unlabeled = {str(path) for path in (shared_folder() / "pets" / "unlabeled").iterdir()}
    assert len(rows) == 4 and {row["path"] for row in rows} <= unlabeled
    said = capsys.readouterr().out
    assert "4 of 6 unlabeled pictures chosen." in said and "fullmatch label" in said
    before = (tmp_path / "next" / "suggestions.csv").read_text()
    with pytest.raises(UserError, match="exists already"):
        typed(pets_run(), "-n", 2, "--out", tmp_path / "next")
    assert (tmp_path / "next" / "suggestions.csv").read_text() == before
    typed(pets_run(), "-n", 2, "--out", tmp_path / "next", "--overwrite")
    assert len(rows_of(tmp_path / "next" / "suggestions.csv")) == 2


@pytest.mark.usefixtures("capsys")
def test_a_full_disk_does_not_stand_in_the_way_later(tmp_path: Path) -> None:
    run = pets_run()
    with full_disk(3000), pytest.raises(UserError, match=r"cannot write .*contact-sheet\.html"):
        typed(run, "-n", 4, "--out", tmp_path)
    typed(run, "-n", 4, "--out", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == PETS


def test_a_csv_and_the_run_folder(tmp_path: Path) -> None:
    run = copied(pets_run(), tmp_path / "run")
    home = shared_folder() / "pets"
    shutil.copytree(home, tmp_path / "pets")
    lines = ["path,label", *(f"pets/labeled/cat | tiger/bild ä {i}.png,cat" for i in range(3))]
    lines += [f"pets/unlabeled/bild ä {i}.png," for i in range(6)]
    table = tmp_path / "pets.csv"
    table.write_text("\n".join(lines), encoding="utf-8")
    config = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(config.replace(str(home), str(table)), encoding="utf-8")
    typed(run)
    rows = rows_of(run / "suggestions" / "suggestions.csv")
    assert {row["path"] for row in rows} == {
        str(tmp_path / "pets" / "unlabeled" / f"bild ä {i}.png") for i in range(6)
    }


def test_a_benchmark_has_no_files_but_positions(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="digits has no picture files; add --indices"):
        typed(digits_run(), "--out", tmp_path)
    assert not list(tmp_path.iterdir())
    typed(digits_run(), "--out", tmp_path, "--indices", "-n", 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == [PETS[0], PETS[3]]
    found = {int(row["path"]) for row in rows_of(tmp_path / "suggestions.csv")}
    hidden = set(range(len(data.load("digits").images)))
    hidden -= set(Split.load(digits_run() / "split.json").labeled)
    assert len(found) == 5 and found <= hidden


@pytest.mark.parametrize(
    ("looked_at", "said"),
    [
        (2000, "4 of 6 unlabeled pictures chosen; 2 more cannot be read."),
        (7, "4 of 8 unlabeled pictures chosen; 7 were looked at, of which 2 cannot be read."),
    ],
)
def test_what_cannot_be_read_is_not_counted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    looked_at: int,
    said: str,
) -> None:
    monkeypatch.setattr("fullmatch.inference.suggestion.LOOKED_AT", looked_at)
    run, home = copied(pets_run(), tmp_path / "run"), shared_folder() / "pets"
    shutil.copytree(home, tmp_path / "pets")
    for name in ("bad 1.png", "bad 2.png"):
        (tmp_path / "pets" / "unlabeled" / name).write_text("no picture")
    config = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(
        config.replace(str(home), str(tmp_path / "pets")), encoding="utf-8"
    )
    typed(run, "-n", 4)
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", "0"], "0 is too few, expected 1 or more"),
        (["-n", "-3"], "-3 is too few"),
        (["-n", "1.5"], "'1.5' is no whole number"),
        (["--out", "file"], "file is a file; name a folder with --out"),
        (["--out", "file/below"], "cannot write file/below"),
    ],
)
def test_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises((UserError, CycloptsError), match=message):
        typed(pets_run(), *words)


@pytest.mark.parametrize("name", ["gone", "gone.csv", "gone.npz"])
def test_pictures_that_are_gone(tmp_path: Path, name: str) -> None:
    run = copied(pets_run(), tmp_path / "run")
    config = (run / "config.toml").read_text(encoding="utf-8")
    (run / "config.toml").write_text(
        config.replace(str(shared_folder() / "pets"), str(tmp_path / name)), encoding="utf-8"
    )
    with pytest.raises(UserError, match=rf"{name}, which .* was trained on, is gone"):
        typed(run)
