"""Did the unlabeled images help? The same network, labels and test images, image by image."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from fullmatch.data import Source, TensorStore
from fullmatch.errors import UserError
from fullmatch.experiment.baseline import FOLDER, baseline_of, compare
from fullmatch.experiment.run import Run, start
from fullmatch.report.sentences import subject
from fullmatch.storage.run_folder import RunFolder
from tests.small_runs import abandon_after, begin, config, digits, finish, stop_after


def finished(tmp_path: Path) -> RunFolder:
    return finish(begin(config("fullmatch", baseline=True), tmp_path / "run")).folder


def baseline(folder: RunFolder) -> Run:
    run = baseline_of(folder, digits())
    assert run is not None
    return run


def test_same_network_same_labels_no_unlabeled_images(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    alone = baseline(folder)
    assert alone.table()["algorithm"] == {"name": "supervised"}
    assert alone.split is not None and alone.split.save(tmp_path / "split") is None
    assert (tmp_path / "split").read_text() == folder.split.read_text()
    assert alone.config.model.name == "wrn-10-1" and alone.config.baseline is False
    assert alone.config.training.steps == 8
    finish(alone)
    assert baseline_of(folder, digits()) is None


def test_baseline_is_resumed_too(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    baseline(folder)  # killed before anything was saved
    stop_after(baseline(folder), 2)
    abandon_after(baseline(folder), 6)
    again = baseline(folder)
    assert again.recovery == ["resumed at step 5"]
    finish(again)
    straight = finished(tmp_path / "other")
    finish(baseline(straight))
    ends = [(f.path / FOLDER / "model.safetensors").read_bytes() for f in (folder, straight)]
    assert ends[0] == ends[1]


def test_a_folder_without_anything_in_it_is_begun(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    (folder.path / FOLDER).mkdir()  # killed right after it was made
    finish(baseline(folder))
    assert compare(folder) is not None


def test_comparison_counts_image_by_image(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    assert compare(folder) is None
    finish(baseline(folder))
    inner = RunFolder(folder.path / FOLDER)
    labels = load_file(folder.predictions)["labels"]
    right = torch.nn.functional.one_hot(labels, 10).float()
    wrong = right.roll(1, dims=1)
    for each, hits in ((folder, 40), (inner, 20)):
        probs = torch.cat([right[:hits], wrong[hits:]])
        save_file({"probabilities": probs, "labels": labels}, each.predictions)
    found = compare(folder)
    assert found is not None and found["gain"] == 0.4 and found["verdict"] == "helped"
    result = json.loads(folder.result.read_text())
    assert result["labels_only"] == found and result["data"] == "digits"


def test_a_start_that_the_labels_alone_do_not_have_is_told(tmp_path: Path) -> None:
    first = finished(tmp_path / "first")
    warm = config("fullmatch", f"model.start={first.path}", baseline=True)
    folder = finish(begin(warm, tmp_path / "warm")).folder
    alone = baseline(folder)
    assert alone.config.model.start is None
    finish(alone)
    found = compare(folder)
    assert found is not None and found["start"] == str(first.path)
    assert subject(folder.read_result()).startswith("Together with the weights of the earlier run")


def own() -> Source:
    return replace(digits(), benchmark=False)


def without_one(source: Source) -> Source:
    assert source.test is not None and source.test_labels is not None
    test = TensorStore(source.test.read(torch.arange(49)))
    return replace(source, test=test, test_labels=source.test_labels[:49])


def exchanged(source: Source) -> Source:
    """Two test pictures in each other's place."""
    assert source.test is not None
    order = torch.arange(50)
    order[:2] = torch.tensor([1, 0])
    return replace(source, test=TensorStore(source.test.read(order)))


def inverted(source: Source) -> Source:
    return replace(source, images=TensorStore(255 - source.images.read(torch.arange(200))))


@pytest.mark.parametrize("changed", [without_one, exchanged, inverted])
@pytest.mark.parametrize("begun", [True, False])
def test_changed_pictures_are_not_compared(tmp_path: Path, changed: Any, begun: bool) -> None:
    out = RunFolder.planned("own", tmp_path / "run")
    folder = finish(start(config("fullmatch", "data.labels=40"), out, own())).folder
    if begun:
        alone = baseline_of(folder, own())
        assert alone is not None
        stop_after(alone, 2)
    with pytest.raises(UserError, match=r"are not what they were when .*; put them back, or start"):
        baseline_of(folder, changed(own()))
    assert (folder.path / FOLDER).exists() is begun  # what was refused leaves nothing behind
    again = baseline_of(folder, own())  # put back
    assert again is not None and again.state.step == 2 * begun
    finish(again)
    assert compare(folder) is not None


def test_results_on_other_test_images_are_not_compared(tmp_path: Path) -> None:
    folder = finished(tmp_path)
    finish(baseline(folder))
    inner = RunFolder(folder.path / FOLDER)
    saved = load_file(inner.predictions)
    words = f"different test images; .* delete the second, then: {folder.resume_command}"
    for other in (
        {name: each[1:] for name, each in saved.items()},
        saved | {"labels": saved["labels"].roll(1)},
    ):
        save_file({name: each.contiguous() for name, each in other.items()}, inner.predictions)
        with pytest.raises(UserError, match=words):
            compare(folder)
    save_file(saved, inner.predictions)
    for each, known in ((folder, "a"), (inner, "b")):
        each.write_result(each.read_result() | {"test_hash": known})
    with pytest.raises(UserError, match=words):
        compare(folder)
    inner.write_result(inner.read_result() | {"test_hash": None})  # of an older version
    assert compare(folder) is not None
