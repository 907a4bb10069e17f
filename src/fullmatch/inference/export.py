"""A model as one ONNX file: bytes of pictures in, calibrated probabilities out, names inside."""

import json
import warnings
from collections.abc import Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import fullmatch
from fullmatch.data.stores import pictures
from fullmatch.data.stores.image_store import evenly_spaced
from fullmatch.errors import UserError
from fullmatch.evaluation.calibration import calibrated
from fullmatch.experiment.classifier import Classifier
from fullmatch.inference.prediction import picture_paths
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.atomic import replacing, explained_errors

LIMIT = 1e-4  # largest difference of a probability from PyTorch's
COMPARED = 100  # pictures


class Served(nn.Module):
    """A classifier with its calibration: (B, channels, H, W) uint8 -> (B, C) probabilities."""

    def __init__(self, classifier: Classifier, temperature: float) -> None:
        super().__init__()
        self.classifier, self.temperature = classifier, temperature

    def forward(self, images: Tensor) -> Tensor:
        return calibrated(self.classifier(images), self.temperature)


class Exported(NamedTuple):
    """What was written, and how near it is to PyTorch."""

    shape: tuple[int, int, int]  # (channels, height, width) of its input
    difference: float
    images: int


def export(
    run: TrainedRun, target: Path, *, check_with: Sequence[str] = (), overwrite: bool = False
) -> Exported:
    """Write the model, once it is shown to agree with PyTorch on real pictures.

    These are pictures of the run's own data, or those of `check_with`.
    """
    onnx, runtime, _ = map(wanted, ("onnx", "onnxruntime", "onnxscript"))
    if target.is_dir() or not target.parent.is_dir():
        raise UserError(f"cannot write {target}: name a file in a folder that exists")
    if target.exists() and not overwrite:
        raise UserError(f"{target} exists already; name another file, or add --overwrite")
    images = chosen(run.classifier, check_with) if check_with else own(run)
    served = Served(run.classifier, run.temperature or 1.0).eval()
    model = traced(served, run)
    with explained_errors(target), replacing(target) as path:
        onnx.save(model, path)
        difference = largest_difference(served, runtime, path, images)
        # So written that a difference that is no number is refused too.
        if not difference <= LIMIT:
            raise UserError(
                f"not exported: ONNX and PyTorch differ by {difference:.1e} on {len(images)} "
                f"pictures, more than {LIMIT:.0e}; try another version of onnxruntime"
            )
    return Exported(run.classifier.image, difference, len(images))


def traced(served: Served, run: TrainedRun) -> Any:
    """The ONNX model, with what its user must know in its metadata."""
    classifier = served.classifier
    example = torch.zeros((2, *classifier.image), dtype=torch.uint8)
    try:
        model = as_onnx(served, example)
    except RuntimeError as error:  # of the tracing or of the translation
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"this model cannot be exported: {reason}; use it from Python, with Classifier.load"
        ) from None
    for part in (*model.graph.node, *model.graph.input, *model.graph.output):
        del part.metadata_props[:]  # file names of this machine, among others
    about = {
        "classes": json.dumps(classifier.classes, ensure_ascii=False),
        "labels": str(run.result["labels"]),
        "temperature": "" if run.temperature is None else str(run.temperature),
        "fullmatch": fullmatch.__version__,
    }
    wanted("onnx").helper.set_model_props(model, about)
    return model


def as_onnx(served: Served, example: Tensor) -> Any:
    batch = ({0: torch.export.Dim("batch")},)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own concerns
        # Strict, since tracing by running it would fix the batch wherever len() is asked for it.
        graph = torch.export.export(served, (example,), dynamic_shapes=batch, strict=True)
        program = torch.onnx.export(
            graph,
            dynamo=True,
            verbose=False,
            input_names=["images"],
            output_names=["probabilities"],
            dynamic_shapes=batch,  # for its name alone, which is not kept in the graph
        )
    assert program is not None
    return program.model_proto


@torch.no_grad()
def largest_difference(served: Served, runtime: Any, path: Path, images: Tensor) -> float:
    """Of any probability, all pictures together and the first alone, since batches may vary."""
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    gaps = [
        np.abs(session.run(None, {"images": part.numpy()})[0] - served(part).numpy()).max()
        for part in (images, images[:1])
    ]
    return float(max(gaps))


def own(run: TrainedRun) -> Tensor:
    """Pictures of the run's data, spread evenly: test pictures where there are any."""
    try:
        store = run.source.images if run.source.test is None else run.source.test
    except UserError as error:
        raise UserError(
            f"{error}; or name pictures to check the export with: --check-with"
        ) from None
    return store.read(evenly_spaced(len(store), COMPARED))


def chosen(classifier: Classifier, places: Sequence[str]) -> Tensor:
    channels, *size = classifier.image
    found = (
        pictures.try_read(lambda p: pictures.decode(p, (size[0], size[1]), channels), path)
        for path in picture_paths(places)
    )
    readable = list(islice((pixels for pixels in found if pixels is not None), COMPARED))
    if not readable:
        raise UserError(f"no readable picture in {', '.join(places)}; name others")
    return torch.from_numpy(np.stack(readable))


def wanted(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise UserError(
            f"export needs the package {package}; run pip install 'fullmatch[export]'"
        ) from None
