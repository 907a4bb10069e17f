"""Run folders: never overwritten, locked while in use."""

import errno
import os
import threading
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.storage.run_folder import RunFolder


def test_numbers_go_up_and_nothing_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    planned = RunFolder.planned("digits-fullmatch")
    assert not Path("runs").exists()  # planned is not made
    made = [planned.make(), RunFolder.planned("digits-fullmatch").make(), planned.make()]
    assert [str(folder.path) for folder in made] == [
        f"runs/digits-fullmatch-00{number}" for number in (1, 2, 3)
    ]
    assert str(RunFolder.planned("other").make().path) == "runs/other-001"


def test_many_at_once_get_a_number_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    planned = [RunFolder.planned("x") for _ in range(20)]
    made: list[Path] = []
    threads = [threading.Thread(target=lambda f=f: made.append(f.make().path)) for f in planned]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 20


def test_existing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"exists already.*choose a new folder with --out$"):
        RunFolder.planned("x", tmp_path)  # not a run, so there is nothing to resume
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(UserError, match="exists already") as error:
        RunFolder.planned("x", tmp_path)
    assert str(error.value).endswith(f"or continue the run with: fullmatch resume {tmp_path}")
    with pytest.raises(UserError, match=r"config.toml exists already, and is a file; choose a new"):
        RunFolder.planned("x", tmp_path / "config.toml")
    late = RunFolder.planned("x", tmp_path / "late")
    (tmp_path / "late").mkdir()
    with pytest.raises(UserError, match="exists already"):
        late.make()


def test_parents_are_made(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b c" / "ä猫"
    assert RunFolder.planned("x", place).make().path.is_dir()


@pytest.mark.parametrize("name", ["file/run", "x" * 300])
def test_a_place_that_cannot_be(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        UserError, match=r"cannot make the run folder .*; choose another with --out"
    ):
        RunFolder.planned("x", tmp_path / name).make()
    with pytest.raises(UserError, match="is not a run folder"):
        RunFolder.existing(tmp_path / name)


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raised by hand, since root may write everywhere."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    folder = RunFolder.planned("x", tmp_path / "run")
    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(UserError, match="Permission denied; choose another with --out"):
        folder.make()
    monkeypatch.setattr("os.open", refused)
    with pytest.raises(UserError, match="Permission denied"), folder.locked():
        pass


def test_no_run_folder(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UserError, match="is not a run folder"):
            RunFolder.existing(path)
    (tmp_path / "config.toml").write_text("")
    assert RunFolder.existing(tmp_path).path == tmp_path


def test_one_at_a_time_even_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "run")
    one, other = RunFolder(tmp_path / "run"), RunFolder(tmp_path / "link")
    with (
        one.locked(),
        pytest.raises(UserError, match="another process is training"),
        other.locked(),
    ):
        pass
    with other.locked():
        pass
    with pytest.raises(KeyError), one.locked():
        raise KeyError
    with one.locked():  # an error releases it too
        pass


@pytest.mark.parametrize(
    ("baseline", "estimate"), [("baseline", "estimate"), ("labels-only", "folds")]
)
def test_inner_folders_of_this_version_and_of_earlier_ones(
    tmp_path: Path, baseline: str, estimate: str
) -> None:
    for name in (baseline, estimate):
        (tmp_path / name).mkdir()
    folder = RunFolder(tmp_path)
    assert folder.baseline == tmp_path / baseline
    assert folder.estimate == tmp_path / estimate


@pytest.mark.parametrize("name", ["baseline", "labels-only"])
def test_a_baseline_is_resumed_through_its_run(tmp_path: Path, name: str) -> None:
    run = tmp_path / "my run"
    (run / name).mkdir(parents=True)
    inner = RunFolder(run / name)
    assert inner.resume_command == f"fullmatch resume '{run / name}'"  # a run of this name
    (run / "config.toml").write_text("")
    assert inner.resume_command == f"fullmatch resume '{run}'"


def test_a_full_disk_says_how_to_go_on(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    message = f"cannot write to {tmp_path}: No space left on device; fix that, then resume with: "
    with pytest.raises(UserError, match=message + folder.resume_command), folder.writing():
        raise OSError(28, "No space left on device")


def write_config(folder: RunFolder) -> None:
    folder.config.write_text("seed = 0")


def test_a_folder_has_its_settings_from_the_first_moment(tmp_path: Path) -> None:
    """A process that is killed leaves nothing under that name, or a run that can be resumed."""
    path = tmp_path / "a" / "run"

    def fill(folder: RunFolder) -> None:
        assert not path.exists()
        write_config(folder)

    assert RunFolder.planned("x", path).make(fill).started
    assert [each.name for each in path.parent.iterdir()] == ["run"]


def test_a_folder_that_cannot_be_filled_is_not_made(tmp_path: Path) -> None:
    def fill(folder: RunFolder) -> None:
        write_config(folder)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(UserError, match=r"cannot make the run folder .*No space left"):
        RunFolder.planned("x", tmp_path / "run").make(fill)
    assert not list(tmp_path.iterdir())


def test_filled_folders_of_one_moment_differ(tmp_path: Path) -> None:
    """Whoever comes second finds files there."""
    path = tmp_path / "run"

    def fill(folder: RunFolder) -> None:
        path.mkdir(exist_ok=True)
        (path / "theirs").touch()
        write_config(folder)

    with pytest.raises(UserError, match="exists already"):
        RunFolder.planned("x", path).make(fill)
    assert [each.name for each in path.iterdir()] == ["theirs"]
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("name", ["file/run", "x" * 300])
def test_a_place_that_cannot_be_filled(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot make the run folder"):
        RunFolder.planned("x", tmp_path / name).make(write_config)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_an_inner_folder_is_filled(tmp_path: Path) -> None:
    """Of a baseline, which may have been made by a process that was killed."""
    (tmp_path / "baseline").mkdir()
    assert RunFolder(tmp_path / "baseline").make(write_config).started
