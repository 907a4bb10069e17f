"""A file is whole, or it is the old one, or it is not there."""

import errno
import os
from pathlib import Path

import pytest

from fullmatch.errors import UserError
from fullmatch.storage.atomic import replacing, write_text
from fullmatch.storage.json_files import write_json
from tests.full_disk import full_disk


@pytest.mark.parametrize("old", [None, "old"])
@pytest.mark.usefixtures("capsys")
def test_a_full_disk_leaves_what_there_was(tmp_path: Path, old: str | None) -> None:
    path = tmp_path / "file.txt"
    if old is not None:
        path.write_text(old)
    with full_disk(), pytest.raises(UserError, match=r"cannot write .*file\.txt: .*; fix that"):
        write_text(path, "new " * 100)
    assert [each.read_text() for each in tmp_path.iterdir()] == ([] if old is None else [old])
    write_text(path, "new")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["new"]


def test_a_read_only_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There even the cleanup fails, which must not hide the cause."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("write_text", "unlink"):
        monkeypatch.setattr(Path, name, refused)
    with pytest.raises(UserError, match="Read-only file system"):
        write_text(tmp_path / "file.txt", "new")


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with replacing(tmp_path / "file.txt") as place:
            place.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "text"


def test_a_pipe_is_written_to_directly(tmp_path: Path) -> None:
    """Such as /dev/stdout: there is no file that could be replaced."""
    reader, writer = os.pipe()
    write_text(Path(f"/dev/fd/{writer}"), "text")
    assert os.read(reader, 100) == b"text"
    for end in (reader, writer):
        os.close(end)
    with pytest.raises(UserError, match="Is a directory"):
        write_text(tmp_path, "text")


def test_names_of_files_may_be_any_bytes(tmp_path: Path) -> None:
    write_text(tmp_path / "names.txt", os.fsdecode(b"caf\xe9.png"))
    assert (tmp_path / "names.txt").read_bytes() == b"caf\xe9.png"


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120)  # near the longest name a file may have
    write_text(path, "first")
    path.chmod(0o600)
    write_text(path, "second")
    assert path.read_text() == "second"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_in_a_run_folder_is_replaced(tmp_path: Path) -> None:
    """A folder of someone else may have links to files of yours."""
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "result.json").symlink_to(tmp_path / "mine")
    write_json(tmp_path / "result.json", {})
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "result.json").is_symlink()
    assert (tmp_path / "result.json").read_text() == "{}\n"
