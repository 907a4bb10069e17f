"""Hidden folders: those of living processes stay, those of killed ones are removed."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fullmatch.storage.atomic import replacing
from fullmatch.storage.private_folders import private_folder, remove_leftovers
from fullmatch.storage.run_folder import RunFolder


@contextmanager
def writing_elsewhere(path: Path) -> Iterator[int]:
    """Another process that has half written a file, and never ends."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with replacing(path) as place:
                place.write_text("half")
                os.write(writer, b"!")
                signal.pause()
        finally:
            os._exit(1)
    os.read(reader, 1)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for end in (reader, writer):
            os.close(end)


def hidden_in(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*") if path.name != ".lock"]


def test_the_next_process_with_the_lock_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.estimate.mkdir()
    for path in (folder.result, folder.estimate / "fold-1.safetensors"):
        with writing_elsewhere(path):
            pass
    assert len(hidden_in(tmp_path)) == 2
    with folder.locked():
        assert hidden_in(tmp_path) == []


def test_a_file_that_is_being_written_stays(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with writing_elsewhere(folder.path / "report.html"):
        before = hidden_in(tmp_path)
        assert len(before) == 1
        with folder.locked():
            assert hidden_in(tmp_path) == before
    with folder.locked():
        assert hidden_in(tmp_path) == []


def test_files_of_others_and_links_stay(tmp_path: Path) -> None:
    mine, run = tmp_path / "mine", tmp_path / "run"
    run.mkdir()
    with writing_elsewhere(mine):
        pass
    (leftover,) = tmp_path.glob(".mine.*")
    (run / ".model.1-0").symlink_to(leftover)
    (run / ".model.2").mkdir()
    (run / ".model.3-0").write_text("a file")
    remove_leftovers(run)
    assert len(hidden_in(run)) == 3
    assert (leftover / "mine").read_text() == "half"


def test_two_folders_for_one_path(tmp_path: Path) -> None:
    with private_folder(tmp_path / "x") as one, private_folder(tmp_path / "x") as other:
        assert one != other
    assert not list(tmp_path.iterdir())
