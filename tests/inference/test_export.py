"""An exported model gives PyTorch's probabilities, and carries all its user needs."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import fullmatch
from fullmatch import data
from fullmatch.errors import UserError
from fullmatch.evaluation.calibration import calibrated
from fullmatch.inference import export as exporting
from fullmatch.inference.export import export
from fullmatch.inference.trained_run import TrainedRun
from tests.served import copied, digit_files, digits_run, pets_run


@pytest.fixture(scope="module", params=["fullmatch", "npmatch"])
def exported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TrainedRun, Path]:
    """One whose network is the classifier, and one whose head is."""
    place = tmp_path_factory.mktemp("export")
    run = TrainedRun(copied(digits_run(request.param), place / "run", temperature=1.7))
    found = export(run, place / "model.onnx")
    assert found.shape == (1, 8, 8) and found.images == 100
    assert 0 <= found.difference < 1e-5
    assert [path.name for path in place.iterdir() if path.is_file()] == ["model.onnx"]
    return run, place / "model.onnx"


@pytest.mark.parametrize("batch", [1, 3, 250])
def test_parity_at_every_batch_size(exported: tuple[TrainedRun, Path], batch: int) -> None:
    run, path = exported
    test = data.load("digits").test
    assert test is not None
    images = test.read(torch.arange(batch))
    session = onnxruntime.InferenceSession(str(path))
    (found,) = session.run(["probabilities"], {"images": images.numpy()})
    with torch.no_grad():
        expected = calibrated(run.classifier(images), 1.7).numpy()
    assert found.shape == (batch, 10) and found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_file_stands_alone_and_names_its_classes(exported: tuple[TrainedRun, Path]) -> None:
    _, path = exported
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    about = {prop.key: prop.value for prop in model.metadata_props}
    assert json.loads(about["classes"]) == list("0123456789")
    assert about["labels"] == "40" and about["temperature"] == "1.7"
    assert about["fullmatch"] == fullmatch.__version__
    (wanted,) = model.graph.input
    assert wanted.type.tensor_type.elem_type == onnx.TensorProto.UINT8
    for end in (wanted, *model.graph.output):
        assert end.type.tensor_type.shape.dim[0].dim_param == "batch"
    assert b".py" not in path.read_bytes()  # nothing of the machine it was made on


# What follows needs no tracing: a model that is there already stands in for it.


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, exported: tuple[TrainedRun, Path]) -> TrainedRun:
    run, path = exported
    monkeypatch.setattr(exporting, "traced", lambda *_: onnx.load(path))
    return run


def test_refuses_a_model_that_differs(
    quick: TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.onnx").write_text("old")
    monkeypatch.setattr(TrainedRun, "temperature", 1.9)
    with pytest.raises(UserError, match=r"not exported: ONNX and PyTorch differ by .* on 100"):
        export(quick, tmp_path / "old.onnx", overwrite=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
    difference = exporting.largest_difference
    monkeypatch.setattr(exporting, "largest_difference", lambda *a: difference(*a) * float("nan"))
    with pytest.raises(UserError, match="differ by nan"):
        export(quick, tmp_path / "new.onnx")
    assert not (tmp_path / "new.onnx").exists()


def test_replaces_a_file_only_when_asked(quick: TrainedRun, tmp_path: Path) -> None:
    target = tmp_path / "model.onnx"
    target.write_text("old")
    with pytest.raises(UserError, match="exists already; name another file, or add --overwrite"):
        export(quick, target)
    assert target.read_text() == "old"
    export(quick, target, overwrite=True)
    assert target.stat().st_size > 1000


def test_checked_on_other_pictures_where_the_data_is_gone(
    quick: TrainedRun, tmp_path: Path
) -> None:
    run = copied(quick.folder.path, tmp_path / "run")
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace('"digits"', '"gone"'))
    with pytest.raises(UserError, match=r"gone, which .*/run was trained on, .*--check-with"):
        export(TrainedRun(run), tmp_path / "model.onnx")
    digit_files(tmp_path / "pictures", 4)
    (tmp_path / "pictures" / "bad.png").touch()
    found = export(
        TrainedRun(run), tmp_path / "model.onnx", check_with=[str(tmp_path / "pictures")]
    )
    assert found.images == 4
    with pytest.raises(UserError, match="no readable picture in"):
        export(
            TrainedRun(run),
            tmp_path / "other.onnx",
            check_with=[str(tmp_path / "pictures" / "bad.png")],
        )


@pytest.mark.parametrize("target", ["gone/model.onnx", "."])
def test_places_that_cannot_be_written(quick: TrainedRun, tmp_path: Path, target: str) -> None:
    with pytest.raises(UserError, match="name a file in a folder that exists"):
        export(quick, tmp_path / target)


def test_a_full_disk_is_one_line(
    quick: TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(model: Any, path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(onnx, "save", full)
    with pytest.raises(UserError, match=r"cannot write .*model\.onnx: No space left"):
        export(quick, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_read_only_disk_is_one_line(
    quick: TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(onnx, "save", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(UserError, match=r"cannot write .*model\.onnx: Read-only file system"):
        export(quick, tmp_path / "model.onnx")


def test_a_model_that_cannot_be_traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def branching(self: exporting.Served, images: torch.Tensor) -> torch.Tensor:
        return images.float() if images.float().mean() > 7 else -images.float()

    monkeypatch.setattr(exporting.Served, "forward", branching)
    with pytest.raises(UserError, match=r"cannot be exported: .*; use it from Python") as caught:
        export(TrainedRun(pets_run()), tmp_path / "model.onnx")
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "onnxscript"])
def test_missing_packages_are_named(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"needs the package {package}; run pip install 'fullmatch\[export\]'"
    with pytest.raises(UserError, match=message):
        export(TrainedRun(pets_run()), tmp_path / "model.onnx")
