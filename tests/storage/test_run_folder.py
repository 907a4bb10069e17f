"""Run folders: never somebody else's, locked while in use, cut back to a checkpoint."""

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
    found: list[Path] = []
    threads = [threading.Thread(target=lambda f=f: found.append(f.make().path)) for f in planned]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 20


def test_existing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"exists already.*name a new folder with --out$"):
        RunFolder.planned("x", tmp_path)  # it is no run, so there is nothing to resume
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(UserError, match="exists already") as error:
        RunFolder.planned("x", tmp_path)
    assert str(error.value).endswith(f"or continue with: fullmatch resume {tmp_path}")
    with pytest.raises(UserError, match=r"config.toml exists already, and is a file; name a new"):
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
    with pytest.raises(UserError, match=r"cannot make the run folder .*; name another with --out"):
        RunFolder(tmp_path / name, new=True).make()


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raised by hand, since whoever runs tests as root may write everywhere."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    folder = RunFolder.planned("x", tmp_path / "run")
    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(UserError, match="Permission denied; name another with --out"):
        folder.make()
    monkeypatch.setattr("os.open", refused)
    with pytest.raises(UserError, match="Permission denied"), folder.locked():
        pass


def test_no_run_folder(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UserError, match="is no run folder"):
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
    with one.locked():  # an error lets go of it too
        pass


def test_metrics_are_cut_back(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.records() == [] and folder.metrics_size() == 0
    folder.cut_metrics(10)  # nothing there: nothing to cut
    folder.append({"step": 1})
    size = folder.metrics_size()
    folder.append({"step": 2, "loss": float("nan")})
    with folder.metrics.open("a") as log:
        log.write('{"step": 3, "lo')  # torn by a kill
    folder.cut_metrics(size)
    assert folder.records() == [{"step": 1}]
    folder.cut_metrics(1000)
    assert folder.records() == [{"step": 1}]


def test_files_are_replaced_at_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write(folder.result, "one")
    folder.write(folder.result, "two")
    assert folder.result.read_text() == "two"
    assert list(tmp_path.iterdir()) == [folder.result]


def test_results_are_read_or_an_error_says_what_to_do(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "my run")
    folder.path.mkdir()
    with pytest.raises(UserError, match=r"not finished; go on with: fullmatch resume '.*my run'"):
        folder.read_result()
    folder.write_result({"seed": 1})
    assert folder.read_result() == {"seed": 1}
    for damage in (b"", b'{"seed"', b"[]", b"\xff"):
        folder.result.write_bytes(damage)
        with pytest.raises(UserError, match=r"result.json is damaged; delete it, .*: fullmatch re"):
            folder.read_result()


def test_labels_only_is_resumed_through_its_run(tmp_path: Path) -> None:
    inner = RunFolder(tmp_path / "my run" / "labels-only")
    assert inner.resume_command == f"fullmatch resume '{tmp_path / 'my run'}'"
