"""A model as one ONNX file: uint8 images in, calibrated probabilities out, class names inside.

Or as one page with that file in it, which runs in a browser.
"""

import json
import warnings
from collections.abc import Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import fullmatch
from fullmatch.data.stores import pictures
from fullmatch.data.stores.image_store import evenly_spaced
from fullmatch.errors import UserError
from fullmatch.evaluation.calibration import apply_temperature
from fullmatch.experiment.classifier import Classifier
from fullmatch.inference.model_page import read_runtime, render_model_page
from fullmatch.inference.prediction import list_files
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.atomic import explained_errors, replacing_chosen, write_text

TOLERANCE = 1e-4  # largest difference of a probability from PyTorch's
COMPARED = 100  # pictures


class CalibratedClassifier(nn.Module):
    """A classifier with its calibration: (B, channels, H, W) uint8 -> (B, C) probabilities."""

    def __init__(self, classifier: Classifier, temperature: float) -> None:
        super().__init__()
        self.classifier, self.temperature = classifier, temperature

    def forward(self, images: Tensor) -> Tensor:
        return apply_temperature(self.classifier(images), self.temperature)


class ExportSummary(NamedTuple):
    """What was written, and how far it is from PyTorch."""

    shape: tuple[int, int, int]  # (channels, height, width) of its input
    difference: float
    images: int


def export_onnx(
    run: TrainedRun, target: Path, *, check_with: Sequence[str] = (), overwrite: bool = False
) -> ExportSummary:
    """Write the model if it agrees with PyTorch on pictures.

    These are pictures of the run's own data, or those of `check_with`.
    """
    onnx, runtime, _ = map(import_optional, ("onnx", "onnxruntime", "onnxscript"))
    check_target(target, overwrite)
    images = read_pictures(run.classifier, check_with) if check_with else read_run_images(run)
    module = CalibratedClassifier(run.classifier, run.temperature or 1.0).eval()
    model = build_onnx_model(module, run)
    with explained_errors(target), replacing_chosen(target) as path:
        onnx.save(model, path)
        difference = largest_difference(module, runtime, path, images)
        if not difference <= TOLERANCE:  # also true for NaN
            raise UserError(
                f"not exported: ONNX and PyTorch differ by {difference:.1e} on {len(images)} "
                f"pictures, more than {TOLERANCE:.0e}; try another version of onnxruntime"
            )
    return ExportSummary(run.classifier.picture, difference, len(images))


def export_page(
    run: TrainedRun,
    target: Path,
    runtime: Path | None,
    *,
    check_with: Sequence[str] = (),
    overwrite: bool = False,
) -> ExportSummary:
    """Write the model as a page that classifies pictures in a browser.

    `runtime` is the `dist` folder of onnxruntime-web. The model is compared as an ONNX file is.
    """
    check_target(target, overwrite)
    files = read_runtime(runtime)
    with TemporaryDirectory() as place:
        path = Path(place) / "model.onnx"
        summary = export_onnx(run, path, check_with=check_with)
        write_text(target, render_model_page(run, path.read_bytes(), files))
    return summary


def check_target(target: Path, overwrite: bool) -> None:
    if target.is_dir() or not target.parent.is_dir():
        raise UserError(f"cannot write {target}: name a file in a folder that exists")
    if target.exists() and not overwrite:
        raise UserError(f"{target} exists already; name another file, or add --overwrite")


def build_onnx_model(module: CalibratedClassifier, run: TrainedRun) -> Any:
    """The ONNX model, with class names and calibration in its metadata."""
    classifier = module.classifier
    example = torch.zeros((2, *classifier.picture), dtype=torch.uint8)
    try:
        model = convert_to_onnx(module, example)
    except RuntimeError as error:  # while tracing or translating
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"this model cannot be exported: {reason}; use it from Python, with Classifier.load"
        ) from None
    for part in (*model.graph.node, *model.graph.input, *model.graph.output):
        del part.metadata_props[:]  # contains file names of this machine
    metadata = {
        "classes": json.dumps(classifier.classes, ensure_ascii=False),
        "labels": str(run.result.labels),
        "temperature": "" if run.temperature is None else str(run.temperature),
        "fullmatch": fullmatch.__version__,
    }
    import_optional("onnx").helper.set_model_props(model, metadata)
    return model


def convert_to_onnx(module: CalibratedClassifier, example: Tensor) -> Any:
    batch = ({0: torch.export.Dim("batch")},)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the exporter's internals
        # Strict, since non-strict tracing fixes the batch size wherever len() is called.
        graph = torch.export.export(module, (example,), dynamic_shapes=batch, strict=True)
        program = torch.onnx.export(
            graph,
            dynamo=True,
            verbose=False,
            input_names=["images"],
            output_names=["probabilities"],
            dynamic_shapes=batch,  # only for the name, which the graph does not keep
        )
    assert program is not None
    return program.model_proto


@torch.no_grad()
def largest_difference(
    module: CalibratedClassifier, runtime: Any, path: Path, images: Tensor
) -> float:
    """Of any probability, for a full batch and for a batch of one."""
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    differences = [
        np.abs(session.run(None, {"images": part.numpy()})[0] - module(part).numpy()).max()
        for part in (images, images[:1])
    ]
    return float(max(differences))


def read_run_images(run: TrainedRun) -> Tensor:
    """Evenly spaced pictures of the run's data: test pictures if there are any."""
    try:
        store = run.source.images if run.source.test is None else run.source.test
    except UserError as error:
        raise UserError(
            f"{error}; or name pictures to check the export with: --check-with"
        ) from None
    return store.read(evenly_spaced(len(store), COMPARED))


def read_pictures(classifier: Classifier, places: Sequence[str]) -> Tensor:
    channels, height, width = classifier.picture
    stretch = classifier.augment.appearance.stretch

    def decode(path: str) -> NDArray[np.uint8]:
        return pictures.decode(path, (height, width), channels, stretch=stretch)

    decoded = (pictures.try_read(decode, path) for path in list_files(places))
    readable = list(islice((pixels for pixels in decoded if pixels is not None), COMPARED))
    if not readable:
        raise UserError(f"no readable picture in {', '.join(places)}; name others")
    return torch.from_numpy(np.stack(readable))


def import_optional(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise UserError(
            f"export needs the package {package}; run pip install 'fullmatch[export]'"
        ) from None
