"""A row for every file, of any kind and number, and the model's own probabilities in it."""

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
from fullmatch.evaluation.calibration import calibrated
from fullmatch.inference.prediction import HEADER, Prediction, Predictor, picture_paths, write_csv
from fullmatch.inference.trained_run import TrainedRun
from tests.served import copied, digit_files, digits_run, odd_files, pets_run


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor(TrainedRun(digits_run()))


def by_name(predictor: Predictor, folder: Path) -> dict[str, Prediction]:
    found = predictor.predictions(picture_paths([str(folder)]))
    return {os.path.relpath(each.path, folder): each for each in found}


@pytest.mark.parametrize("temperature", [None, 3.0])
def test_rows_are_the_models_calibrated_probabilities(
    tmp_path: Path, temperature: float | None
) -> None:
    run = copied(digits_run(), tmp_path / "run", temperature=temperature)
    files = digit_files(tmp_path / "digits", 70)  # more than a batch
    predictor = Predictor(TrainedRun(run))
    said = any("not calibrated" in note for note in predictor.notes)
    assert said is (temperature is None)
    with torch.no_grad():
        probs = predictor.classifier(torch.from_numpy(np.stack(list(files.values()))))
    probs = calibrated(probs, temperature or 1.0)
    limit = predictor.unsure = probs.amax(dim=1).median().item()  # both flags occur
    found = list(predictor.predictions(files))
    assert [each.path for each in found] == list(files)
    for each, row in zip(found, probs, strict=True):
        best = row.topk(3)
        assert [name for name, _ in each.ranked] == [str(code) for code in best.indices.tolist()]
        assert [share for _, share in each.ranked] == pytest.approx(best.values.tolist(), abs=1e-5)
        if best.values[0] == pytest.approx(limit, abs=1e-6):
            continue  # on the line itself, rounding decides
        sure = best.values[0] >= limit
        assert each.flag in (("", "unlike") if sure else ("unsure", "unlike"))
    assert {"", "unsure"} <= {each.flag for each in found}


def test_every_file_of_a_mixed_folder_has_its_row(predictor: Predictor, tmp_path: Path) -> None:
    expected = odd_files(tmp_path / "odd")
    before = {p.name: p.read_bytes() for p in (tmp_path / "odd").iterdir() if p.is_file()}
    found = by_name(predictor, tmp_path / "odd")
    assert {name: bool(each.ranked) for name, each in found.items()} == expected
    assert all((each.flag == "unreadable") is not expected[n] for n, each in found.items())
    after = {p.name: p.read_bytes() for p in (tmp_path / "odd").iterdir() if p.is_file()}
    assert after == before  # nobody's pictures are touched


def test_stripes_are_unlike_digits(predictor: Predictor, tmp_path: Path) -> None:
    stripes = np.tile(np.array([0, 255], dtype=np.uint8), (8, 4))
    Image.fromarray(stripes).save(tmp_path / "stripes.png")
    assert by_name(predictor, tmp_path)["stripes.png"].flag == "unlike"


def test_files_folders_and_patterns(tmp_path: Path) -> None:
    digit_files(tmp_path / "a" / "b [1]", 3)
    digit_files(tmp_path / "a" / "c", 2)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "pipe.png")

    def count(*places: str) -> int:
        return len(list(picture_paths([str(tmp_path / place) for place in places])))

    assert count("a") == 5
    assert count("a/b [1]") == 3  # a folder by its name, however it looks
    assert count("a/**/*.png") == 5
    assert count("a/c/000.png", "a/c", "a/c/000.png") == 4
    for missing in ("nothing", "a/*.jpg", "a/*"):
        with pytest.raises(UserError, match="no picture, folder or pattern"):
            picture_paths([str(tmp_path / missing)])


def test_a_file_named_twice_has_two_rows(predictor: Predictor, tmp_path: Path) -> None:
    (path,) = digit_files(tmp_path, 1)
    first, second = predictor.predictions([path, path])
    assert first == second and first.ranked


def test_a_pipe_is_not_waited_for(predictor: Predictor, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    assert by_name(predictor, tmp_path)["pipe.png"].flag == "unreadable"


def test_streams(predictor: Predictor, tmp_path: Path) -> None:
    (path,) = digit_files(tmp_path, 1)
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield path

    stream = predictor.predictions(endless())
    for _ in range(130):
        next(stream)
    assert taken <= 192


def test_listing_takes_no_memory_for_the_files_it_lists(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        many = tmp_path / str(count)
        many.mkdir()
        (many / "first.png").touch()
        for number in range(count - 1):
            os.link(many / "first.png", many / f"{number}.png")
        tracemalloc.start()
        listed = sum(1 for _ in picture_paths([str(many)]))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert listed == count
        return found

    peak(50)  # what is made once
    assert peak(10_000) < peak(100) + 10_000  # bytes: one each


def test_csv_survives_any_name(tmp_path: Path) -> None:
    out = io.StringIO()
    odd = Prediction('a, "b"\nc.png', (("cat | tiger", 0.75), ("dög, 2", 0.25)), "")
    flags = write_csv([odd, Prediction("x", (), "unreadable")], out)
    first, second = csv.DictReader(io.StringIO(out.getvalue()))
    assert tuple(first) == HEADER
    assert first["path"] == odd.path and first["second"] == "dög, 2"
    assert first["third"] == first["third_confidence"] == ""  # of two classes
    assert second["label"] == "" and second["flag"] == "unreadable"
    assert flags == {"": 1, "unreadable": 1}


def test_two_classes_in_colour(tmp_path: Path) -> None:
    predictor = Predictor(TrainedRun(pets_run()), unsure=0)
    odd_files(tmp_path / "odd")
    found = by_name(predictor, tmp_path / "odd")["cmyk.jpg"]
    assert {name for name, _ in found.ranked} == {"cat | tiger", "dög 2"} and found.flag == ""
    assert "pictures unlike the training ones are not flagged" in predictor.notes[0]


def test_unsure_is_a_share() -> None:
    with pytest.raises(UserError, match="--unsure is 70, expected a confidence from 0 to 1"):
        Predictor(TrainedRun(digits_run()), unsure=70)


def test_a_folder_that_cannot_be_entered_has_a_row(
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
    found = by_name(predictor, tmp_path)
    assert found["closed"].flag == "unreadable" and found["open/000.png"].ranked
