"""No picture that a run was trained on may measure it, nor one of the runs it starts from."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from fullmatch import data
from fullmatch.api.pages import write_report
from fullmatch.data import FileStore, Source, TensorStore
from fullmatch.data.stores.image_store import evenly_spaced
from fullmatch.errors import UserError
from fullmatch.experiment import identity
from fullmatch.experiment.baseline import compare_with_baseline, prepare_baseline
from fullmatch.experiment.identity import hash_pictures
from fullmatch.experiment.leakage import (
    LEAKED,
    find_learned,
    find_learned_test_pictures,
    keys_of,
    read_learned,
)
from fullmatch.experiment.run import Run
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import resume, start
from fullmatch.inference.card import render_card
from fullmatch.inference.evaluate import Evaluation, evaluate_run
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.json_files import DamagedFile
from fullmatch.storage.result import Verdict
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
    """Digits as a user's pictures; so many more unlabeled ones, or in the test set."""
    source, size = digits(), 120
    assert source.test is not None
    assert source.test_labels is not None
    extra = torch.arange(size, size + test)
    return replace(
        source,
        images=TensorStore(source.images.read(torch.arange(size + training))),
        labels=torch.cat([source.labels[:size], torch.full((training,), -1)]),
        test=TensorStore(torch.cat([source.test.read(TEST), source.images.read(extra)])),
        test_labels=torch.cat([source.test_labels, source.labels[extra]]),
        benchmark=False,
    )


def start_run(out: Path, source: Source, *settings: str, algorithm: str = "fullmatch") -> Run:
    chosen = config(algorithm, "data.labels=none", *settings)
    return start(chosen, RunFolder.planned("own", out), source)


def trained(out: Path, source: Source, *settings: str, algorithm: str = "fullmatch") -> RunFolder:
    return finish(start_run(out, source, *settings, algorithm=algorithm)).folder


def count_learned(folder: RunFolder, source: Source) -> tuple[int, int]:
    """On how many training and test pictures of a source a run was trained."""
    assert source.test is not None
    stores = (source.images, source.test)
    training, test = (int(find_learned(read_learned(folder), store).sum()) for store in stores)
    return training, test


def test_what_is_kept(tmp_path: Path) -> None:
    source = own(training=20)
    folder = trained(tmp_path / "all", source)
    assert count_learned(folder, source) == (140, 0)
    assert count_learned(folder, own(test=30)) == (120, 20)
    assert folder.learned.stat().st_size < 140 * 8 + 200
    supervised = trained(tmp_path / "supervised", source, algorithm="supervised")
    assert count_learned(supervised, source) == (120, 0)  # it uses no unlabeled pictures
    assert not finish(begin(config(), tmp_path / "digits")).folder.learned.exists()


def test_an_earlier_run_was_trained_on_test_pictures(tmp_path: Path) -> None:
    first = trained(tmp_path / "first", own(training=20))
    source = own(test=30)
    message = "run that this one starts from was trained on 20 of 80 test pictures"
    second = trained(tmp_path / "second", source, f"model.start={first.path}", "baseline=true")
    result = second.read_result()
    assert sum(message in note for note in result.notes) == 1
    assert result.health[0].kind == LEAKED
    baseline = prepare_baseline(second, source)
    assert baseline is not None
    assert not any("trained on" in note for note in baseline.notes)
    finish(baseline)
    comparison = compare_with_baseline(second)
    assert comparison is not None
    assert comparison.verdict is Verdict.INVALID
    page = write_report(second.path, tmp_path / "page.html", source).read_text(encoding="utf-8")
    assert page.count(message) == 2
    assert message in render_card(TrainedRun(second.path))
    third = start_run(tmp_path / "third", source, f"model.start={second.path}")
    # The weights of the second run come from the first.
    assert sum(message in note for note in third.notes) == 1
    assert start_run(tmp_path / "fresh", source).leaks == []


def test_a_resumed_run_reports_the_same(tmp_path: Path) -> None:
    first, source = trained(tmp_path / "first", own(training=20)), own(test=30)
    settings = f"model.start={first.path}"
    straight = trained(tmp_path / "straight", source, settings)
    killed, broken = start_run(tmp_path / "killed", source, settings), tmp_path / "broken"
    stop_after(start_run(broken, source, settings), 2)
    for path in (killed.folder.path, broken):
        finish(resume(RunFolder(path), source))
        assert read_outputs(path) == read_outputs(straight.path)
        assert load_file(path / "learned.safetensors").keys() == {"1x8x8"}
    abandon_after(start_run(tmp_path / "gone", source, settings), 6)
    first.path.rename(tmp_path / "elsewhere")
    assert resume(RunFolder(tmp_path / "gone"), source).leaks == killed.leaks != []


def test_pictures_are_recognized_at_another_size(tmp_path: Path) -> None:
    home = clean_folder(tmp_path / "own", labels=2, unlabeled=2)
    names = ("model.name=wrn-10-1", "data.size=16", *TINY, "training.steps=1")
    run = start(resolve(data=str(home), assignments=names), RunFolder(tmp_path / "run", new=True))
    folder = finish(run).folder
    paths = sorted(str(path) for path in home.rglob("*.*g"))
    Image.new("RGB", (20, 20)).save(tmp_path / "new.png")
    store = FileStore([*paths, tmp_path / "new.png"], (24, 24))
    in_memory = TensorStore(store.read(torch.arange(13)), store.paths)
    for each in (store, in_memory):
        assert find_learned(read_learned(folder), each).tolist() == [True] * 12 + [False]
    nameless = TensorStore(torch.zeros(3, 3, 24, 24, dtype=torch.uint8))
    assert not find_learned(read_learned(folder), nameless).any()


def test_evaluation_leaves_out_training_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trained(tmp_path / "run", own(training=20))
    source = own(test=30)

    def evaluate(source: Source) -> Evaluation:
        monkeypatch.setattr("fullmatch.inference.evaluate.load_source", lambda config: source)
        return evaluate_run(folder)

    assert evaluate(own()).images == 50
    assert evaluate(own()).notes == ()
    assert evaluate(source).images == 60
    note = "20 of 80 test images are left out: the model was trained on them"
    assert evaluate(source).notes == (note,)
    learned = TensorStore(source.images.read(TEST))
    with pytest.raises(UserError, match="trained on every test image of digits; evaluate it on"):
        evaluate(replace(source, test=learned, test_labels=source.labels[TEST]))


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    folder = trained(tmp_path / "run", own())
    folder.learned.write_bytes(b"damaged")
    with pytest.raises(
        DamagedFile,
        match=r"learned\.safetensors is damaged \(.*\); write it again with: fullmatch resume",
    ):
        read_learned(folder)
    folder.learned.unlink()  # as in an older version
    assert read_learned(folder) == {}


def test_one_changed_picture_of_many_is_noticed(tmp_path: Path) -> None:
    """The hash of a data set covers only some pictures."""
    every = data.load("digits").images
    assert len(every) > identity.SAMPLE
    pixels = every.read(torch.arange(len(every)))
    labels = torch.cat([own().labels, torch.full((len(every) - 120,), -1)])
    source = replace(own(), images=TensorStore(pixels.clone()), labels=labels)
    stop_after(start_run(tmp_path / "run", source), 2)
    left_out = set(range(len(every))) - set(evenly_spaced(len(every), identity.SAMPLE).tolist())
    pixels[max(left_out)] ^= 255
    assert hash_pictures(TensorStore(pixels)) == hash_pictures(source.images)
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(UserError, match="have changed since the checkpoint of step 2 was saved"):
        resume(folder, replace(source, images=TensorStore(pixels)))
    finish(resume(folder, source))


def test_runs_without_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in earlier versions: a note says what is not known, and a resumed run records it."""
    source = own(training=20)
    names = ("data.name=pictures", "model.name=wrn-10-1")
    stop_after(start_run(tmp_path / "run", source, *names), 2)
    folder = RunFolder(tmp_path / "run")
    folder.learned.unlink()
    finish(resume(folder, source))
    assert count_learned(folder, source) == (140, 0)
    folder.learned.unlink()
    message = "did not record which pictures it was trained on; check that none of them is in"
    monkeypatch.setattr("fullmatch.inference.evaluate.load_source", lambda config: source)
    monkeypatch.setattr("fullmatch.inference.evaluate.require_data", lambda *_: None)
    assert evaluate_run(folder).images == 50
    assert message in evaluate_run(folder).notes[0]
    second = start_run(tmp_path / "second", source, *names, f"model.start={folder.path}")
    assert sum(message in note for note in second.notes) == 1


@pytest.mark.parametrize("names", [["3x99999x99999"], [f"3x8x{side}" for side in range(1, 200)]])
def test_sizes_that_would_take_forever_are_refused(names: list[str], tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    save_file({name: torch.zeros(1, dtype=torch.int64) for name in names}, folder.learned)
    with pytest.raises(DamagedFile, match=r"too large|199 sizes"):
        read_learned(folder)


def test_test_pictures_of_unknown_classes_count_too() -> None:
    dataset = data.SemiDataset.from_source(own())
    assert dataset.test is not None
    learned = {"1x8x8": keys_of(dataset.images)}
    assert find_learned_test_pictures(learned, dataset) == []
    strange = TensorStore(dataset.images.read(torch.arange(3)))
    (finding,) = find_learned_test_pictures(learned, replace(dataset, unknown_test=strange))
    assert f"3 of {len(dataset.test) + 3} test pictures" in finding.message
