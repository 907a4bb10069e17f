"""The labels-only baseline: same network, labels and test images, compared image by image."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from fullmatch.data import Source, TensorStore
from fullmatch.errors import UserError
from fullmatch.evaluation.wording import describe_subject
from fullmatch.experiment.baseline import compare_with_baseline, prepare_baseline
from fullmatch.experiment.run import Run
from fullmatch.experiment.start import start
from fullmatch.storage.result import Verdict
from fullmatch.storage.run_folder import RunFolder
from tests.small_runs import abandon_after, begin, config, digits, finish, stop_after


def finished(tmp_path: Path) -> RunFolder:
    return finish(begin(config("fullmatch", baseline=True), tmp_path / "run")).folder


def baseline_of(folder: RunFolder) -> Run:
    run = prepare_baseline(folder, digits())
    assert run is not None
    return run


def test_same_network_same_labels_no_unlabeled_images(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    baseline = baseline_of(folder)
    assert baseline.table()["algorithm"] == {"name": "supervised"}
    assert baseline.split is not None
    baseline.split.save(tmp_path / "split")
    assert (tmp_path / "split").read_text() == folder.split.read_text()
    assert baseline.config.model.name == "wrn-10-1"
    assert baseline.config.baseline is False
    assert baseline.config.training.steps == 8
    finish(baseline)
    assert prepare_baseline(folder, digits()) is None


def test_baseline_is_resumed_too(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    baseline_of(folder)  # killed before anything was saved
    stop_after(baseline_of(folder), 2)
    abandon_after(baseline_of(folder), 6)
    resumed = baseline_of(folder)
    assert resumed.recovery == ["resumed at step 5"]
    finish(resumed)
    straight = finished(tmp_path / "other")
    finish(baseline_of(straight))
    models = [(each.baseline / "model.safetensors").read_bytes() for each in (folder, straight)]
    assert models[0] == models[1]


@pytest.mark.parametrize("name", ["baseline", "labels-only"])
def test_an_empty_folder_is_used(tmp_path: Path, name: str) -> None:
    folder = finished(tmp_path)
    (folder.path / name).mkdir()  # killed right after it was made
    folder = RunFolder(folder.path)
    finish(baseline_of(folder))
    assert (folder.path / name / "result.json").exists()
    assert compare_with_baseline(folder) is not None


def test_comparison_counts_image_by_image(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    assert compare_with_baseline(folder) is None
    finish(baseline_of(folder))
    inner = RunFolder(folder.baseline)
    labels = load_file(folder.predictions)["labels"]
    right = torch.nn.functional.one_hot(labels, 10).float()
    wrong = right.roll(1, dims=1)
    for each, hits in ((folder, 40), (inner, 20)):
        probs = torch.cat([right[:hits], wrong[hits:]])
        save_file({"probabilities": probs, "labels": labels}, each.predictions)
    comparison = compare_with_baseline(folder)
    assert comparison is not None
    assert comparison.verdict is Verdict.HELPED
    assert comparison.gain == 0.4
    assert (comparison.better, comparison.worse) == (20, 0)
    result = folder.read_result()
    assert result.baseline == comparison
    assert result.data == "digits"


def test_a_start_that_the_baseline_does_not_have_is_reported(tmp_path: Path) -> None:
    first = finished(tmp_path / "first")
    warm = config("fullmatch", f"model.start={first.path}", baseline=True)
    folder = finish(begin(warm, tmp_path / "warm")).folder
    baseline = baseline_of(folder)
    assert baseline.config.model.start is None
    finish(baseline)
    comparison = compare_with_baseline(folder)
    assert comparison is not None
    assert comparison.start == str(first.path)
    subject = describe_subject(folder.read_result())
    assert subject.startswith("Together with the weights of the earlier run")


def own() -> Source:
    return replace(digits(), benchmark=False)


def without_one(source: Source) -> Source:
    assert source.test is not None
    assert source.test_labels is not None
    test = TensorStore(source.test.read(torch.arange(49)))
    return replace(source, test=test, test_labels=source.test_labels[:49])


def exchanged(source: Source) -> Source:
    """With two test pictures swapped."""
    assert source.test is not None
    order = torch.arange(50)
    order[:2] = torch.tensor([1, 0])
    return replace(source, test=TensorStore(source.test.read(order)))


def inverted(source: Source) -> Source:
    return replace(source, images=TensorStore(255 - source.images.read(torch.arange(200))))


@pytest.mark.parametrize("changed", [without_one, exchanged, inverted])
@pytest.mark.parametrize("started", [True, False])
def test_changed_pictures_are_not_compared(tmp_path: Path, changed: Any, started: bool) -> None:
    out = RunFolder.planned("own", tmp_path / "run")
    folder = finish(start(config("fullmatch", "data.labels=40"), out, own())).folder
    if started:
        baseline = prepare_baseline(folder, own())
        assert baseline is not None
        stop_after(baseline, 2)
    with pytest.raises(UserError, match=r"have changed since .*; restore them, or start a new run"):
        prepare_baseline(folder, changed(own()))
    assert folder.baseline.exists() is started  # a refused run leaves nothing behind
    restored = prepare_baseline(folder, own())
    assert restored is not None
    assert restored.state.step == 2 * started
    finish(restored)
    assert compare_with_baseline(folder) is not None


def test_results_on_other_test_images_are_not_compared(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    finish(baseline_of(folder))
    inner = RunFolder(folder.baseline)
    saved = load_file(inner.predictions)
    for other, message in (
        (
            {name: each[1:] for name, each in saved.items()},
            r"damaged \(it is about 49 labeled images, result.json about 50\); write it again",
        ),
        (
            saved | {"labels": saved["labels"].roll(1)},
            f"different test images; .* delete the second, then run: {folder.resume_command}",
        ),
    ):
        save_file({name: each.contiguous() for name, each in other.items()}, inner.predictions)
        with pytest.raises(UserError, match=message):
            compare_with_baseline(folder)
    save_file(saved, inner.predictions)
    for each, test_hash in ((folder, "a"), (inner, "b")):
        each.write_result(replace(each.read_result(), test_hash=test_hash))
    with pytest.raises(UserError, match=message):
        compare_with_baseline(folder)
    inner.write_result(replace(inner.read_result(), test_hash=None))  # of an older version
    assert compare_with_baseline(folder) is not None
