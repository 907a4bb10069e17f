"""`train` and `resume` as commands: what they do around the training itself."""

from pathlib import Path

import pytest

from fullmatch import data
from fullmatch.cli.commands.resume import resume
from fullmatch.cli.commands.train import train
from fullmatch.storage.run_folder import RunFolder
from tests.small_pictures import write_pets

SMALL = ["model.name=wrn-10-1", "data.size=16", "training.batch=2", "training.ratio=1"]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the data sets that were read, each time that one was."""
    names: list[str] = []
    own = data.load

    def counted(name: str, **options: object) -> data.Source:
        names.append(name)
        return own(name, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(data, "load", counted)
    return names


def test_pictures_are_read_once_for_all_that_is_learned_from_them(
    tmp_path: Path, loaded: list[str]
) -> None:
    pets, out = write_pets(tmp_path), tmp_path / "run"
    train(str(pets), steps=2, baseline=True, out=out, set_=SMALL)
    assert loaded == [str(pets)]
    folder = RunFolder.existing(out)
    assert (folder.path / "labels-only" / "result.json").exists()
    for place in (folder.path, folder.path / "labels-only"):
        (place / "result.json").unlink()
    loaded.clear()
    resume(out)
    # The report looks for itself, as it does for runs of other days.
    assert loaded == [str(pets)] * 2
