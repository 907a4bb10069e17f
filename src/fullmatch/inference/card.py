"""A model card: what a model is, how good it is and how that was measured, and what it is not."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

from fullmatch.experiment.settings import display_name
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.report.sentences import subject
from fullmatch.storage.runs import any_unlabeled


def card(run: TrainedRun) -> str:
    """The card of a finished run, in Markdown."""
    parts = (what, data, quality, classes, calibration, limits, loading)
    return "\n\n".join("\n".join(part(run)) for part in parts) + "\n"


def what(run: TrainedRun) -> Iterator[str]:
    result, config, classifier = run.result, run.config, run.classifier
    channels, height, width = classifier.image
    yield f"# A classifier of {plain(result['data'])}"
    yield ""
    yield (
        f"It tells {len(classifier.classes)} classes of pictures apart: "
        f"{', '.join(map(plain, classifier.classes))}."
    )
    yield ""
    yield f"- Input: {height} x {width} pixels, {'grey' if channels == 1 else 'colour'}."
    pretrained = config.model.pretrained or config.model.weights is not None
    yield f"- Network: {plain(config.model.name)}{', pretrained' * pretrained}."
    yield (
        f"- Method: {plain(display_name(config.algorithm))}, {result['steps']:,} steps, "
        f"seed {result['seed']}; the weights are a running average, taken at the last step."
    )
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    yield f"- Made with {versions}, in {result['seconds']:.0f} s on {plain(result['device'])}."


def data(run: TrainedRun) -> Iterator[str]:
    result = run.result
    yield "## Data"
    yield ""
    others = f"{result['unlabeled']:,} without their labels, the labeled ones among them"
    yield (
        f"{plain(result['data'])}: {result['labels']:,} labeled pictures, and "
        f"{others if any_unlabeled(result) else 'no others'}."
    )
    if result.get("split"):
        yield f"Which labels were used is in split.json (hash {result['split'][:16]})."
    if result["notes"]:
        yield "\nSaid when it was trained:\n"
    for note in result["notes"]:
        yield f"- {plain(note)}"


def quality(run: TrainedRun) -> Iterator[str]:
    yield "## How good it is"
    yield ""
    scores = run.result.get("teacher")
    honest = run.result.get("honest") or {}
    if scores is None and "accuracy" in honest:
        yield plain(honest["sentence"])
        yield "It is measured on labels held out of the training of other models made alike."
        return
    if scores is None:
        yield (
            "Nobody knows: there were no test pictures. Measure it on pictures it has not seen "
            "before relying on it, with `fullmatch evaluate`."
        )
        return
    low, high = (f"{100 * bound:.1f}" for bound in scores["interval"])
    yield (
        f"**{percent(scores['last'])} accuracy** on {total(scores):,} test pictures "
        f"(95 % interval {low} to {high}), measured on the model as it is, after the last step. "
        "No choice was made by it."
    )
    if "best_chosen_on_test" in scores:
        yield ""
        yield (
            "The test pictures were also looked at during training: median of the last 20 "
            f"evaluations {percent(scores['median_last_20'])}; best of all, "
            f"{percent(scores['best_chosen_on_test'])}, which is chosen on the test pictures and "
            "so flatters."
        )
    if found := run.result.get("labels_only"):
        low, high = (f"{100 * bound:+.1f}" for bound in found["interval"])
        yield ""
        yield (
            f"{subject(run.result, 'pictures')} {found['verdict']}: "
            f"{100 * found['gain']:+.1f} points over the same network on the labels alone "
            f"(95 % interval {low} to {high})."
        )


def classes(run: TrainedRun) -> Iterator[str]:
    yield "## Class by class"
    yield ""
    names = list(map(plain, run.classifier.classes))
    scores = run.result.get("teacher")
    held_out = (run.result.get("honest") or {}).get("per_class")
    if scores is None and held_out:
        yield "| class | accuracy on held-out labels |"
        yield "|---|---:|"
        for name, share in held_out.items():
            yield f"| {plain(name)} | {'not measured' if share is None else percent(share)} |"
        return
    if scores is None:
        yield "Not measured."
        return
    yield "| class | test pictures | accuracy | most often taken for |"
    yield "|---|---:|---:|---|"
    for code, (name, share) in enumerate(zip(names, scores["per_class"], strict=True)):
        row = scores["confusion"][code]
        wrong = max((n for n in range(len(row)) if n != code), key=lambda n: row[n])
        taken = f"{names[wrong]} ({row[wrong]})" if row[wrong] else "-"
        accuracy = "-" if share is None else percent(share)
        yield f"| {name} | {sum(row)} | {accuracy} | {taken} |"


def calibration(run: TrainedRun) -> Iterator[str]:
    yield "## Calibration"
    yield ""
    details: dict[str, Any] = run.result.get("calibration", {})
    if run.temperature is None:
        yield f"Its {plain(run.uncalibrated)}."
        yield "Take them as an order, not as probabilities."
    else:
        note = details.get("note", "fitted on held-out labels, never on the test pictures")
        yield f"Temperature {run.temperature:.3g}: {plain(note)}."
        if details.get("ece_before") is not None:
            yield (
                f"On those, the expected calibration error went from "
                f"{percent(details['ece_before'])} to {percent(details['ece_after'])}."
            )
    if scores := run.result.get("teacher"):
        yield (
            "On the test pictures, the expected calibration error of the confidences without a "
            f"temperature is {percent(scores['ece'])}."
        )


def limits(run: TrainedRun) -> Iterator[str]:
    yield "## Limits"
    yield ""
    yield (
        "- It knows no other classes: every picture gets one of these. `fullmatch predict` flags "
        "pictures unlike the training ones, but not all of them."
    )
    yield (
        "- The accuracy holds for pictures taken the same way as those it was measured on; the "
        "interval counts the number of test pictures, not another seed or other labels."
    )
    scores = run.result.get("teacher")
    known = (
        [
            (share, plain(name))
            for share, name in zip(scores["per_class"], run.classifier.classes, strict=True)
            if share is not None
        ]
        if scores
        else []
    )
    if known:
        share, name = min(known)
        yield f"- It is weakest on {name}: {percent(share)}."
    yield (
        f"- {run.result['labels']:,} labels taught it what the classes are; a mistake among them "
        "is learned as well."
    )


def loading(run: TrainedRun) -> Iterator[str]:
    folder = shlex.quote(str(run.folder.path))
    yield "## How to use it"
    yield ""
    yield "```console"
    yield f"fullmatch predict {folder} PICTURES --csv labels.csv"
    yield f"fullmatch export {folder} model.onnx"
    yield "```"
    yield ""
    yield "```python"
    yield "from pathlib import Path"
    yield "from fullmatch.experiment.classifier import Classifier"
    yield ""
    yield f"classifier = Classifier.load(Path({str(run.folder.model)!r}))"
    channels, height, width = run.classifier.image
    yield f"# probabilities = classifier(images), uint8 of (batch, {channels}, {height}, {width})"
    yield "```"


def plain(text: str) -> str:
    """A name in Markdown, with what Markdown would take for markup made harmless."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", " ".join(str(text).split()))


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def total(scores: dict[str, Any]) -> int:
    return sum(map(sum, scores["confusion"]))
