"""The model card of a finished run: what the model is, how good it is, and its limitations."""

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from fullmatch.evaluation.wording import (
    describe_comparison,
    describe_estimate,
    describe_recall,
    percent,
)
from fullmatch.experiment.settings import display_name
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.storage.result import Scores


class ClassScores(NamedTuple):
    """One row of the card's table."""

    name: str
    images: int
    accuracy: float | None  # None without test pictures
    confused_with: str  # empty if it is never mistaken for another class


def render_card(run: TrainedRun, place: str = "") -> str:
    """The model card in Markdown; `place` is where others find the model, such as hf:user/name."""
    result, classifier = run.result, run.classifier
    channels, height, width = classifier.image
    rows = list(score_classes(result.teacher, classifier.classes)) if result.teacher else []
    measured = [row for row in rows if row.accuracy is not None]
    return card_template().render(
        result=result,
        scores=result.teacher,
        estimate=result.estimate,
        estimate_text=describe_estimate(result.estimate) if result.estimate else "",
        comparison=describe_comparison(result, "pictures"),
        recall=describe_recall(result),
        classes=classifier.classes,
        class_scores=rows,
        weakest=min(measured, key=lambda row: (row.accuracy, row.name), default=None),
        model=run.config.model,
        method=display_name(run.config.algorithm),
        channels=channels,
        height=height,
        width=width,
        calibration_note=run.calibration_note,
        place=place,
        folder=place or shlex.quote(str(run.folder.path)),
        model_path=repr(str(run.folder.model)),
    )


def score_classes(scores: Scores, classes: Sequence[str]) -> Iterator[ClassScores]:
    for code, (name, accuracy) in enumerate(zip(classes, scores.per_class, strict=True)):
        row = scores.confusion[code]
        other = max((at for at in range(len(row)) if at != code), key=lambda at: row[at])
        confused_with = f"{classes[other]} ({row[other]})" if row[other] else ""
        yield ClassScores(name, sum(row), accuracy, confused_with)


@cache
def card_template() -> Template:
    """The template; every value in it is escaped for Markdown, unless it is marked as safe."""
    environment = Environment(
        finalize=lambda value: value if isinstance(value, Markup) else escape_markdown(value),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        autoescape=False,  # this is not HTML
    )
    environment.filters["percent"] = percent
    environment.filters["number"] = lambda value: f"{value:,}"
    source = files("fullmatch.inference") / "card.md.j2"
    return environment.from_string(source.read_text(encoding="utf-8"))


def escape_markdown(value: object) -> str:
    """Text on one line, without any Markdown markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", " ".join(str(value).split()))
