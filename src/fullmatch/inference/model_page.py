"""A model as one web page: pictures that are dropped on it are classified in the browser.

Everything is inside, also onnxruntime-web: a page that is opened from a disk may load no other
file, and one that loads nothing can be checked to send nothing, which its policy rules out.
"""

import base64
import gzip
import json
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fullmatch.errors import UserError, pluralize
from fullmatch.evaluation.wording import percent
from fullmatch.inference.prediction import TOP
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.pages.frame import Section, content_security_policy, render_page, resource
from fullmatch.pages.markup import Markup, join, tag

CODE = "ort.wasm.bundle.min.mjs"
BINARY = "ort-wasm-simd-threaded.wasm"
UNSURE = 0.7  # as in `fullmatch predict`
# Beyond what other pages may do: run the embedded runtime, and show dropped pictures.
SOURCES = {"script-src": "blob: 'wasm-unsafe-eval'", "img-src": "blob:"}


class WebRuntime(NamedTuple):
    """The files of onnxruntime-web that a page needs."""

    code: bytes
    binary: bytes


def read_runtime(folder: Path | None) -> WebRuntime:
    """The files in the `dist` folder of onnxruntime-web."""
    how = "get it with: npm pack onnxruntime-web, unpack it, and add --runtime package/dist"
    if folder is None:
        raise UserError(f"a page needs onnxruntime-web, which fullmatch does not include; {how}")
    try:
        return WebRuntime((folder / CODE).read_bytes(), (folder / BINARY).read_bytes())
    except OSError as error:
        raise UserError(
            f"--runtime {folder} is not the dist folder of onnxruntime-web "
            f"({Path(error.filename).name}: {error.strerror}); {how}"
        ) from None


def render_model_page(run: TrainedRun, model: bytes, runtime: WebRuntime) -> str:
    """The page, from the ONNX file and the runtime."""
    classifier = run.classifier
    settings = {
        "classes": classifier.classes,
        "shape": classifier.picture,
        "stretch": classifier.augment.appearance.stretch,
        "unsure": UNSURE,
        "top": TOP,
    }
    content = join(
        [
            tag("p", "Loading the model ...", id="status", role="status", class_="faint"),
            drop_zone(),
            tag("div", id="results", aria_live="polite"),
            tag("script", embed_json(settings), type="application/json", id="settings"),
            embed_bytes("runtime", runtime.code),
            embed_bytes("wasm", runtime.binary),
            embed_bytes("model", model),
        ]
    )
    section = Section(
        "classify",
        "Classify pictures",
        content,
        script=resource("model_page.js", "fullmatch.inference"),
        style=resource("model_page.css", "fullmatch.inference"),
    )
    about = Section("about", "About this model", describe_model(run))
    return render_page(
        f"Classifier for {run.result.data}",
        f"{pluralize(classifier.classes, 'class', 'classes')}: {', '.join(classifier.classes)}",
        [section, about],
        policy=partial(content_security_policy, sources=SOURCES),
    )


def drop_zone() -> Markup:
    """A label, so that a click or the keyboard opens the file dialog."""
    limits = {"type": "file", "accept": "image/*"}
    choose = tag("input", id="pictures", multiple=True, disabled=True, **limits)
    hint = tag("span", "or click to choose files", class_="faint")
    return tag("label", tag("strong", "Drop pictures here"), hint, choose, id="drop")


def describe_model(run: TrainedRun) -> Markup:
    result = run.result
    measured = result.teacher.top1 if result.teacher else None
    if measured is None and result.estimate is not None:
        measured = result.estimate.accuracy
    kind = "on test pictures" if result.teacher else "on held-out labels"
    accuracy = "not known" if measured is None else f"{percent(measured)} {kind}"
    facts = [
        f"Accuracy: {accuracy}.",
        f"Learned from {pluralize(result.labels, 'label')}; every picture gets one of the classes, "
        "also one that shows something else.",
        f"Its {run.calibration_note}." if run.calibration_note else "Confidences are calibrated.",
        "All of it runs in this page, with onnxruntime-web by Microsoft (MIT License). "
        "Nothing is loaded from or sent to a network.",
    ]
    return tag("ul", *(tag("li", fact) for fact in facts))


def embed_json(value: object) -> Markup:
    """JSON inside of a script element, which no text in it can end."""
    return Markup(json.dumps(value).replace("<", r"\u003c"))


def embed_bytes(name: str, content: bytes) -> Markup:
    packed = base64.b64encode(gzip.compress(content, mtime=0)).decode()
    return tag("script", packed, type="text/plain", id=name)
