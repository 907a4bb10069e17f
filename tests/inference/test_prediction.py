"""One row per file of any kind, with the probabilities of the model."""

import csv
import io
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from fullmatch.errors import UserError
from fullmatch.evaluation.calibration import apply_temperature
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.start import start
from fullmatch.inference.prediction import (
    HEADER,
    Flag,
    Prediction,
    Predictor,
    RankedClass,
    list_files,
    write_csv,
)
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.run_folder import RunFolder
from tests.served import calibrated_at, copy_run, digit_files, digits_run, odd_files, pets_run
from tests.small_runs import finish


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor(TrainedRun(digits_run()))


def predict_folder(predictor: Predictor, folder: Path) -> dict[str, Prediction]:
    """Predictions by file name."""
    predictions = predictor.predict(list_files([str(folder)]))
    return {os.path.relpath(each.path, folder): each for each in predictions}


@pytest.mark.parametrize("temperature", [None, 3.0])
def test_rows_have_the_calibrated_probabilities_of_the_model(
    tmp_path: Path, temperature: float | None
) -> None:
    calibration = None if temperature is None else calibrated_at(temperature)
    run = copy_run(digits_run(), tmp_path / "run", calibration=calibration)
    files = digit_files(tmp_path / "digits", 70)  # more than one batch
    predictor = Predictor(TrainedRun(run))
    noted = any("not calibrated" in note for note in predictor.notes)
    assert noted is (temperature is None)
    with torch.no_grad():
        probs = predictor.classifier(torch.from_numpy(np.stack(list(files.values()))))
    probs = apply_temperature(probs, temperature or 1.0)
    limit = predictor.unsure = probs.amax(dim=1).median().item()  # so that some are unsure
    predictions = list(predictor.predict(files))
    assert [each.path for each in predictions] == list(files)
    for each, row in zip(predictions, probs, strict=True):
        best = row.topk(3)
        assert [name for name, _ in each.classes] == [str(code) for code in best.indices.tolist()]
        assert [share for _, share in each.classes] == pytest.approx(best.values.tolist(), abs=1e-5)
        if best.values[0] == pytest.approx(limit, abs=1e-6):
            continue  # here rounding decides
        sure = best.values[0] >= limit
        assert each.flag in (("", "unlike") if sure else ("unsure", "unlike"))
    assert {"", "unsure"} <= {each.flag for each in predictions}


def test_every_file_of_a_mixed_folder_has_a_row(predictor: Predictor, tmp_path: Path) -> None:
    expected = odd_files(tmp_path / "odd")
    before = {p.name: p.read_bytes() for p in (tmp_path / "odd").iterdir() if p.is_file()}
    predictions = predict_folder(predictor, tmp_path / "odd")
    assert {name: bool(each.classes) for name, each in predictions.items()} == expected
    assert all((each.flag == "unreadable") is not expected[n] for n, each in predictions.items())
    after = {p.name: p.read_bytes() for p in (tmp_path / "odd").iterdir() if p.is_file()}
    assert after == before  # the files are not changed


def test_stripes_are_flagged_as_unlike_digits(predictor: Predictor, tmp_path: Path) -> None:
    stripes = np.tile(np.array([0, 255], dtype=np.uint8), (8, 4))
    Image.fromarray(stripes).save(tmp_path / "stripes.png")
    assert predict_folder(predictor, tmp_path)["stripes.png"].flag == "unlike"


def test_files_folders_and_patterns(tmp_path: Path) -> None:
    digit_files(tmp_path / "a" / "b [1]", 3)
    digit_files(tmp_path / "a" / "c", 2)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "pipe.png")

    def count(*places: str) -> int:
        return len(list(list_files([str(tmp_path / place) for place in places])))

    assert count("a") == 5
    assert count("a/b [1]") == 3  # a folder, though it looks like a pattern
    assert count("a/**/*.png") == 5
    assert count("a/c/000.png", "a/c", "a/c/000.png") == 4
    for missing in ("nothing", "a/*.jpg", "a/*"):
        with pytest.raises(UserError, match="no picture, folder or pattern"):
            list_files([str(tmp_path / missing)])


def test_a_file_named_twice_has_two_rows(predictor: Predictor, tmp_path: Path) -> None:
    (path,) = digit_files(tmp_path, 1)
    first, second = predictor.predict([path, path])
    assert first == second
    assert first.classes


def test_does_not_wait_for_a_pipe(predictor: Predictor, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    assert predict_folder(predictor, tmp_path)["pipe.png"].flag == "unreadable"


def test_reads_no_more_files_than_needed(predictor: Predictor, tmp_path: Path) -> None:
    (path,) = digit_files(tmp_path, 1)
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield path

    stream = predictor.predict(endless())
    for _ in range(130):
        next(stream)
    assert taken <= 192


def test_listing_files_needs_constant_memory(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        many = tmp_path / str(count)
        many.mkdir()
        (many / "first.png").touch()
        for number in range(count - 1):
            os.link(many / "first.png", many / f"{number}.png")
        tracemalloc.start()
        listed = sum(1 for _ in list_files([str(many)]))
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert listed == count
        return memory

    peak(50)  # fills caches
    assert peak(10_000) < peak(100) + 10_000  # at most one byte per file


def test_csv_with_unusual_names(tmp_path: Path) -> None:
    out = io.StringIO()
    odd = Prediction(
        'a, "b"\nc.png', (RankedClass("cat | tiger", 0.75), RankedClass("dög, 2", 0.25)), Flag.NONE
    )
    flags = write_csv([odd, Prediction("x", (), Flag.UNREADABLE)], out)
    first, second = csv.DictReader(io.StringIO(out.getvalue()))
    assert tuple(first) == HEADER
    assert first["path"] == odd.path
    assert first["second"] == "dög, 2"
    assert first["third"] == first["third_confidence"] == ""  # there are only two classes
    assert second["label"] == ""
    assert second["flag"] == "unreadable"
    assert flags == {"": 1, "unreadable": 1}


def test_two_classes_in_color(tmp_path: Path) -> None:
    predictor = Predictor(TrainedRun(pets_run()), unsure=0)
    odd_files(tmp_path / "odd")
    prediction = predict_folder(predictor, tmp_path / "odd")["cmyk.jpg"]
    assert {name for name, _ in prediction.classes} == {"cat | tiger", "dög 2"}
    assert prediction.flag == ""
    assert "pictures unlike the training pictures are not flagged" in predictor.notes[0]


def test_unsure_is_a_fraction() -> None:
    with pytest.raises(UserError, match="--unsure is 70, expected a confidence from 0 to 1"):
        Predictor(TrainedRun(digits_run()), unsure=70)


def test_an_unreadable_folder_has_a_row(
    predictor: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digit_files(tmp_path / "closed", 1)
    digit_files(tmp_path / "open", 1)
    scandir = os.scandir

    def guarded(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    predictions = predict_folder(predictor, tmp_path)
    assert predictions["closed"].flag == "unreadable"
    assert predictions["open/000.png"].classes


def test_pictures_of_no_class_are_flagged_by_a_method_that_predicts_them(tmp_path: Path) -> None:
    settings = ("data.unknown_classes=8,9", "training.steps=3", "training.batch=8")
    config = resolve(algorithm="iomatch", labels=16, assignments=settings)
    run = finish(start(config, RunFolder.planned("x", tmp_path / "run")))
    predictor = Predictor(TrainedRun(run.folder.path), unsure=0.0)
    heads = predictor.classifier.algorithm.get_submodule("heads.open_set")
    files = digit_files(tmp_path / "digits", 20)
    for bias, expected in ((100.0, Flag.UNKNOWN), (-100.0, Flag.NONE)):
        with torch.no_grad():
            heads.get_parameter("bias")[8] = bias
        flags = {each.flag for each in predictor.predict(files)} - {Flag.NOVEL}
        assert flags == {expected}
