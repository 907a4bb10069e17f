"""What `train` and `resume` do before and after training."""

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
    """The names of the data sets that were loaded, in order."""
    names: list[str] = []
    load = data.load

    def record(name: str, **options: object) -> data.Source:
        names.append(name)
        return load(name, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(data, "load", record)
    return names


def test_pictures_are_loaded_once(tmp_path: Path, loaded: list[str]) -> None:
    pets, out = write_pets(tmp_path), tmp_path / "run"
    train(str(pets), steps=2, baseline=True, out=out, set_=SMALL)
    assert loaded == [str(pets)]
    folder = RunFolder.existing(out)
    baseline = RunFolder(folder.baseline)
    assert baseline.finished
    for each in (folder, baseline):
        each.result.unlink()
    loaded.clear()
    resume(out)
    assert loaded == [str(pets)]
    assert folder.finished
    assert baseline.finished
    assert (out / "report.html").exists()
