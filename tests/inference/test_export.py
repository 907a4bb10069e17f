"""An exported model gives PyTorch's probabilities, and contains all that is needed to use it."""

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
from fullmatch.evaluation.calibration import apply_temperature
from fullmatch.inference import export
from fullmatch.inference.export import CalibratedClassifier, export_onnx
from fullmatch.inference.trained_run import TrainedRun
from tests.served import calibrated_at, copy_run, digit_files, digits_run, pets_run


@pytest.fixture(scope="module", params=["fullmatch", "npmatch"])
def exported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TrainedRun, Path]:
    """A model whose network is the classifier, and one whose head is."""
    folder = tmp_path_factory.mktemp("export")
    copy = copy_run(digits_run(request.param), folder / "run", calibration=calibrated_at(1.7))
    run = TrainedRun(copy)
    summary = export_onnx(run, folder / "model.onnx")
    assert summary.shape == (1, 8, 8)
    assert summary.images == 100
    assert 0 <= summary.difference < 1e-5
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["model.onnx"]
    return run, folder / "model.onnx"


@pytest.mark.parametrize("batch", [1, 3, 250])
def test_same_probabilities_at_any_batch_size(
    exported: tuple[TrainedRun, Path], batch: int
) -> None:
    run, path = exported
    test = data.load("digits").test
    assert test is not None
    images = test.read(torch.arange(batch))
    session = onnxruntime.InferenceSession(str(path))
    (probs,) = session.run(["probabilities"], {"images": images.numpy()})
    with torch.no_grad():
        expected = apply_temperature(run.classifier(images), 1.7).numpy()
    assert probs.shape == (batch, 10)
    assert probs.dtype == np.float32
    np.testing.assert_allclose(probs, expected, atol=1e-5)


def test_the_file_names_its_classes(exported: tuple[TrainedRun, Path]) -> None:
    _, path = exported
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    metadata = {prop.key: prop.value for prop in model.metadata_props}
    assert json.loads(metadata["classes"]) == list("0123456789")
    assert metadata["labels"] == "40"
    assert metadata["temperature"] == "1.7"
    assert metadata["fullmatch"] == fullmatch.__version__
    (images,) = model.graph.input
    assert images.type.tensor_type.elem_type == onnx.TensorProto.UINT8
    for end in (images, *model.graph.output):
        assert end.type.tensor_type.shape.dim[0].dim_param == "batch"
    assert b".py" not in path.read_bytes()  # no file names of this machine


# The tests below use a model that was built before, since tracing is slow.


@pytest.fixture
def untraced(monkeypatch: pytest.MonkeyPatch, exported: tuple[TrainedRun, Path]) -> TrainedRun:
    run, path = exported
    monkeypatch.setattr(export, "build_onnx_model", lambda *_: onnx.load(path))
    return run


def test_a_model_that_differs_is_not_written(
    untraced: TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.onnx").write_text("old")
    monkeypatch.setattr(TrainedRun, "temperature", 1.9)
    with pytest.raises(UserError, match=r"not exported: ONNX and PyTorch differ by .* on 100"):
        export_onnx(untraced, tmp_path / "old.onnx", overwrite=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
    difference = export.largest_difference
    monkeypatch.setattr(export, "largest_difference", lambda *a: difference(*a) * float("nan"))
    with pytest.raises(UserError, match="differ by nan"):
        export_onnx(untraced, tmp_path / "new.onnx")
    assert not (tmp_path / "new.onnx").exists()


def test_replaces_a_file_only_with_overwrite(untraced: TrainedRun, tmp_path: Path) -> None:
    target = tmp_path / "model.onnx"
    target.write_text("old")
    with pytest.raises(UserError, match="exists already; name another file, or add --overwrite"):
        export_onnx(untraced, target)
    assert target.read_text() == "old"
    export_onnx(untraced, target, overwrite=True)
    assert target.stat().st_size > 1000


def test_checked_on_other_pictures_if_the_data_is_gone(
    untraced: TrainedRun, tmp_path: Path
) -> None:
    run = copy_run(untraced.folder.path, tmp_path / "run")
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace('"digits"', '"gone"'))
    with pytest.raises(UserError, match=r"gone, which .*/run was trained on, .*--check-with"):
        export_onnx(TrainedRun(run), tmp_path / "model.onnx")
    digit_files(tmp_path / "pictures", 4)
    (tmp_path / "pictures" / "bad.png").touch()
    summary = export_onnx(
        TrainedRun(run), tmp_path / "model.onnx", check_with=[str(tmp_path / "pictures")]
    )
    assert summary.images == 4
    with pytest.raises(UserError, match="no readable picture in"):
        export_onnx(
            TrainedRun(run),
            tmp_path / "other.onnx",
            check_with=[str(tmp_path / "pictures" / "bad.png")],
        )


@pytest.mark.parametrize("target", ["gone/model.onnx", "."])
def test_targets_that_cannot_be_written(untraced: TrainedRun, tmp_path: Path, target: str) -> None:
    with pytest.raises(UserError, match="name a file in a folder that exists"):
        export_onnx(untraced, tmp_path / target)


def test_a_full_disk_is_one_line(
    untraced: TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(model: Any, path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(onnx, "save", fail)
    with pytest.raises(UserError, match=r"cannot write .*model\.onnx: No space left"):
        export_onnx(untraced, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_read_only_disk_is_one_line(
    untraced: TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(onnx, "save", fail)
    monkeypatch.setattr(Path, "unlink", fail)
    with pytest.raises(UserError, match=r"cannot write .*model\.onnx: Read-only file system"):
        export_onnx(untraced, tmp_path / "model.onnx")


def test_a_model_that_cannot_be_traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def branching(self: CalibratedClassifier, images: torch.Tensor) -> torch.Tensor:
        return images.float() if images.float().mean() > 7 else -images.float()

    monkeypatch.setattr(CalibratedClassifier, "forward", branching)
    with pytest.raises(UserError, match=r"cannot be exported: .*; use it from Python") as caught:
        export_onnx(TrainedRun(pets_run()), tmp_path / "model.onnx")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "onnxscript"])
def test_missing_packages_are_named(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"needs the package {package}; run pip install 'fullmatch\[export\]'"
    with pytest.raises(UserError, match=message):
        export_onnx(TrainedRun(pets_run()), tmp_path / "model.onnx")
