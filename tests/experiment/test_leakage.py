"""No picture that taught a run tells how good it is: not of this run, nor of those it came from."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from fullmatch.cli.commands.report import write_report
from fullmatch.data import FileStore, Source, TensorStore
from fullmatch.errors import UserError
from fullmatch.experiment import inputs as given
from fullmatch.experiment.baseline import baseline_of, compare
from fullmatch.experiment.leakage import SEEN, learned_by, seen
from fullmatch.experiment.run import Run, resume, start
from fullmatch.experiment.settings import resolve
from fullmatch.inference.card import render_card
from fullmatch.inference.evaluate import Evaluation, evaluate_run
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.run_folder import RunFolder
from tests.own_pictures import clean_folder
from tests.small_runs import (
    TINY,
    abandon_after,
    begin,
    config,
    digits,
    finish,
    read_outputs,
    stop_after,
)

TEST = torch.arange(50)


def own(*, training: int = 0, test: int = 0) -> Source:
    """Digits as somebody's pictures; so many more are among them, or in the test."""
    found, size = digits(), 120
    assert found.test is not None and found.test_labels is not None
    extra = torch.arange(size, size + test)
    return replace(
        found,
        images=TensorStore(found.images.read(torch.arange(size + training))),
        labels=torch.cat([found.labels[:size], torch.full((training,), -1)]),
        test=TensorStore(torch.cat([found.test.read(TEST), found.images.read(extra)])),
        test_labels=torch.cat([found.test_labels, found.labels[extra]]),
        benchmark=False,
    )


def begun(out: Path, source: Source, *settings: str, algorithm: str = "fullmatch") -> Run:
    chosen = config(algorithm, "data.labels=none", *settings)
    return start(chosen, RunFolder.planned("own", out), source)


def trained(out: Path, source: Source, *settings: str, algorithm: str = "fullmatch") -> RunFolder:
    return finish(begun(out, source, *settings, algorithm=algorithm)).folder


def seen_of(folder: RunFolder, source: Source) -> tuple[int, int]:
    """How many training and test pictures of a source a run knows."""
    assert source.test is not None
    known = learned_by(folder)
    return int(seen(known, source.images).sum()), int(seen(known, source.test).sum())


def test_what_is_kept(tmp_path: Path) -> None:
    source = own(training=20)
    folder = trained(tmp_path / "all", source)
    assert seen_of(folder, source) == (140, 0) and seen_of(folder, own(test=30)) == (120, 20)
    assert folder.learned.stat().st_size < 140 * 8 + 200
    alone = trained(tmp_path / "alone", source, algorithm="supervised")
    assert seen_of(alone, source) == (120, 0)  # it never looks at the others
    assert not finish(begin(config(), tmp_path / "digits")).folder.learned.exists()


def test_a_test_that_an_earlier_run_has_learned_from(tmp_path: Path) -> None:
    first = trained(tmp_path / "first", own(training=20))
    source = own(test=30)
    words = "20 of 80 test pictures taught the run that this one starts from"
    second = trained(tmp_path / "second", source, f"model.start={first.path}", "baseline=true")
    result = second.read_result()
    assert any(note.startswith(words) for note in result["notes"])
    assert result["health"][0]["kind"] == SEEN
    alone = baseline_of(second, source)
    assert alone is not None and not any("taught" in note for note in alone.notes)
    finish(alone)
    found = compare(second)
    assert found is not None and found["verdict"].startswith("cannot be judged")
    page = write_report(second.path, tmp_path / "page.html", source).read_text(encoding="utf-8")
    assert page.count(words) == 2 and words in render_card(TrainedRun(second.path))
    third = begun(tmp_path / "third", source, f"model.start={second.path}")
    assert any(note.startswith(words) for note in third.notes)  # the first's weights are in it too
    assert begun(tmp_path / "anew", source).seen == []


def test_a_resumed_run_says_the_same(tmp_path: Path) -> None:
    first, source = trained(tmp_path / "first", own(training=20)), own(test=30)
    settings = f"model.start={first.path}"
    straight = trained(tmp_path / "straight", source, settings)
    killed, broken = begun(tmp_path / "killed", source, settings), tmp_path / "broken"
    stop_after(begun(broken, source, settings), 2)
    for path in (killed.folder.path, broken):
        finish(resume(RunFolder(path), source))
        assert read_outputs(path) == read_outputs(straight.path)
        assert load_file(path / "learned.safetensors").keys() == {"1x8x8"}
    abandon_after(begun(tmp_path / "gone", source, settings), 6)
    first.path.rename(tmp_path / "elsewhere")
    assert resume(RunFolder(tmp_path / "gone"), source).seen == killed.seen != []


def test_pictures_are_known_at_another_size(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "own", labels=2, unlabeled=2)
    names = ("model.name=wrn-10-1", "data.size=16", *TINY, "training.steps=1")
    run = start(resolve(data=str(home), assignments=names), RunFolder(tmp_path / "run", new=True))
    folder = finish(run).folder
    paths = sorted(str(path) for path in home.rglob("*.*g"))
    Image.new("RGB", (20, 20)).save(tmp_path / "new.png")
    store = FileStore([*paths, tmp_path / "new.png"], (24, 24))
    for each in (store, store.load()):
        assert seen(learned_by(folder), each).tolist() == [True] * 12 + [False]
    nameless = TensorStore(torch.zeros(3, 3, 24, 24, dtype=torch.uint8))
    assert not seen(learned_by(folder), nameless).any()


def test_evaluation_leaves_out_what_was_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trained(tmp_path / "run", own(training=20))
    source = own(test=30)

    def evaluate(source: Source) -> Evaluation:
        monkeypatch.setattr("fullmatch.inference.evaluate.load_source", lambda config: source)
        return evaluate_run(folder)

    assert evaluate(own()).images == 50 and evaluate(own()).notes == ()
    assert evaluate(source).images == 60
    note = "20 of 80 test images are left out: the model was trained on them"
    assert evaluate(source).notes == (note,)
    known = TensorStore(source.images.read(TEST))
    with pytest.raises(UserError, match="trained on every test image of digits; evaluate it on"):
        evaluate(replace(source, test=known, test_labels=source.labels[TEST]))


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    folder = trained(tmp_path / "run", own())
    folder.learned.write_bytes(b"damaged")
    with pytest.raises(UserError, match=r"cannot read .*learned\.safetensors: .*; bring a whole"):
        learned_by(folder)
    folder.learned.unlink()  # as of an older version
    assert learned_by(folder) == {}


def test_one_changed_picture_of_many_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash of a data set looks at some pictures only."""
    monkeypatch.setattr(given, "SAMPLE", 10)
    source = own(training=20)
    stop_after(begun(tmp_path / "run", source), 2)
    pixels = source.images.read(torch.arange(140))
    pixels[131] = 255 - pixels[131]
    assert given.pictures_hash(TensorStore(pixels)) == given.pictures_hash(source.images)
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(UserError, match="are not what they were when the checkpoint of step 2"):
        resume(folder, replace(source, images=TensorStore(pixels)))
    finish(resume(folder, source))


def test_runs_that_kept_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of earlier versions: what is not known is said, and found out where it can be."""
    source = own(training=20)
    names = ("data.name=pictures", "model.name=wrn-10-1")
    stop_after(begun(tmp_path / "run", source, *names), 2)
    folder = RunFolder(tmp_path / "run")
    folder.learned.unlink()
    finish(resume(folder, source))
    assert seen_of(folder, source) == (140, 0)
    folder.learned.unlink()
    words = "has learned from was not kept; see to it yourself that none is in the test"
    monkeypatch.setattr("fullmatch.inference.evaluate.load_source", lambda config: source)
    monkeypatch.setattr("fullmatch.inference.evaluate.require_data", lambda *_: None)
    assert evaluate_run(folder).images == 50 and words in evaluate_run(folder).notes[0]
    second = begun(tmp_path / "second", source, *names, f"model.start={folder.path}")
    assert sum(words in note for note in second.notes) == 1
