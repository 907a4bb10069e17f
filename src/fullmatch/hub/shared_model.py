"""What is shared of a run: the model and what it needs, without pictures, paths or predictions."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

import fullmatch
from fullmatch.config import to_table
from fullmatch.config.tables import read_toml
from fullmatch.data import DATASETS
from fullmatch.errors import UserError
from fullmatch.experiment.settings import display_name
from fullmatch.inference.card import render_card
from fullmatch.inference.trained_run import SHARED, TrainedRun
from fullmatch.plugins import is_reference
from fullmatch.storage.json_files import write_json
from fullmatch.storage.result import PairedComparison, RunResult
from fullmatch.storage.run_folder import RunFolder

# Files that a model on the hub consists of; the first one marks it as one of ours.
FILES = (SHARED, "config.toml", "result.json", "model.safetensors")
README = "README.md"
PRIVATE = {"data": ("root", "split"), "model": ("start", "weights")}  # settings that are paths


@dataclass(frozen=True, kw_only=True)
class SharedModel:
    """What other programs may want to know: class names, and how pictures are prepared."""

    format: int = 1
    fullmatch: str
    classes: tuple[str, ...]
    picture: tuple[int, int, int]  # (channels, height, width) that a picture is brought to
    stretch: bool  # to that size; or else the middle is cut out
    preprocessing: dict[str, Any]  # what the network does first: crop, mean and deviation
    temperature: float | None  # that confidences are calibrated with


def write_shared(run: TrainedRun, folder: Path, place: str) -> list[Path]:
    """Write all that is shared into a folder; `place` is how others will name the model."""
    config = clean_config(read_toml(run.folder.config))
    refuse_code(config, str(run.folder.path), "it would run on other machines; share it yourself")
    copy, benchmark = RunFolder(folder), config["data"]["name"] in DATASETS
    copy.config.write_text(tomli_w.dumps(config), encoding="utf-8")
    write_json(copy.result, clean_result(run.result, benchmark=benchmark))
    shutil.copyfile(run.folder.model, copy.model)
    classifier = run.classifier
    about = SharedModel(
        fullmatch=fullmatch.__version__,
        classes=classifier.classes,
        picture=classifier.picture,
        stretch=classifier.augment.appearance.stretch,
        preprocessing=to_table(classifier.augment.appearance),
        temperature=run.temperature,
    )
    write_json(folder / SHARED, about)
    shared = TrainedRun(folder)
    text = render_metadata(shared, place) + render_card(shared, place=f"hf:{place}")
    (folder / README).write_text(text, encoding="utf-8")
    return [folder / name for name in (*FILES, README)]


def clean_config(table: dict[str, Any]) -> dict[str, Any]:
    """Settings without paths of this machine."""
    config = {
        name: dict(part) if isinstance(part, Mapping) else part for name, part in table.items()
    }
    for section, names in PRIVATE.items():
        for name in names:
            config.get(section, {}).pop(name, None)
    data = config["data"]
    if data["name"] not in DATASETS:
        data["name"] = clean_name(data["name"])
    config["algorithm"] = clean_texts(config["algorithm"])
    return config


def clean_result(result: RunResult, *, benchmark: bool) -> RunResult:
    """A result without paths of this machine; notes may name pictures."""
    estimate = result.estimate
    return replace(
        result,
        data=result.data if benchmark else clean_name(result.data),
        algorithm=clean_texts(result.algorithm),
        notes=result.notes if benchmark else (),
        baseline=result.baseline and clean_comparison(result.baseline),
        estimate=estimate and replace(estimate, gain=clean_comparison(estimate.gain)),
    )


def clean_comparison(comparison: PairedComparison) -> PairedComparison:
    if comparison.start is None:
        return comparison
    return replace(comparison, start=clean_name(comparison.start))


def clean_texts(table: dict[str, Any]) -> dict[str, Any]:
    return {
        name: clean_name(value) if isinstance(value, str) and is_path(value) else value
        for name, value in table.items()
    }


def clean_name(path: str) -> str:
    """The last part of a path, without a colon, which would make it a place."""
    return Path(path).name.replace(":", "-") or "pictures"


def is_path(text: str) -> bool:
    return "/" in text or os.sep in text


def refuse_code(config: Mapping[str, Any], where: str, reason: str) -> None:
    """`UserError` if settings name code, as `module:name`: a shared model never brings any."""
    sections = [config.get(name, {}) for name in ("model", "algorithm", "optimizer", "data")]
    views = config.get("augment", {})
    sections += views.values() if isinstance(views, Mapping) else []
    for section in sections:
        name = section.get("name") if isinstance(section, Mapping) else None
        if isinstance(name, str) and is_reference(name):
            raise UserError(f"{where} needs the code {name}, and {reason}")


def render_metadata(run: TrainedRun, place: str) -> str:
    """The head of the card that the hub reads. JSON is YAML, and escapes every name."""
    result, method = run.result, display_name(run.config.algorithm)
    metadata: dict[str, Any] = {
        "library_name": "fullmatch",
        "pipeline_tag": "image-classification",
        "tags": ["image-classification", "semi-supervised-learning", method],
    }
    measured = result.teacher.top1 if result.teacher else None
    kind = "test accuracy"
    if measured is None and result.estimate is not None:
        measured, kind = result.estimate.accuracy, "accuracy on held-out labels"
    if measured is not None:
        score = {
            "task": {"type": "image-classification"},
            "dataset": {"name": result.data, "type": result.data},
            "metrics": [{"type": "accuracy", "name": kind, "value": round(measured, 4)}],
        }
        metadata["model-index"] = [{"name": place.rpartition("/")[2], "results": [score]}]
    lines = [f"{name}: {json.dumps(value)}" for name, value in metadata.items()]
    return "\n".join(["---", *lines, "---", "", ""])
