"""A finished run: its result, and its model at work."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fullmatch.api.frames import make_frame, metrics_table
from fullmatch.api.pages import ReportPage, report
from fullmatch.evaluation.wording import capitalize, describe_comparison, percent
from fullmatch.experiment.settings import display_name
from fullmatch.hub.transfer import fetch_model, is_on_hub, push_model
from fullmatch.inference.card import render_card
from fullmatch.inference.evaluate import Evaluation, evaluate_run
from fullmatch.inference.export import ExportSummary, export_onnx, export_page
from fullmatch.inference.picture_inputs import Pictures, list_pictures
from fullmatch.inference.prediction import HEADER, Prediction, Predictor
from fullmatch.inference.trained_run import TrainedRun
from fullmatch.pages.markup import join, tag
from fullmatch.storage.metrics_log import LogRecord
from fullmatch.storage.result import Interval, RunResult
from fullmatch.storage.run_folder import RunFolder

if TYPE_CHECKING:
    import pandas

UNSURE = 0.7
ROWS = 100  # of predictions that a notebook shows


class PredictionList(list[Prediction]):
    """Predictions in the order of the pictures; notebooks show them as a table."""

    @property
    def labels(self) -> list[str | None]:
        """The most likely class of each picture; None where it cannot be read."""
        return [each.label for each in self]

    def to_frame(self) -> "pandas.DataFrame":
        """The rows that `fullmatch predict` writes."""
        return make_frame([dict(zip(HEADER, each.row(), strict=True)) for each in self])

    def _repr_html_(self) -> str:
        heading = tag("tr", *(tag("th", name) for name in ("picture", "label", "confidence", "")))
        rows = [
            tag("tr", *(tag("td", cell) for cell in self._cells(at, each)))
            for at, each in enumerate(self[:ROWS])
        ]
        more = tag("p", f"and {len(self) - ROWS:,} more") if len(self) > ROWS else ""
        return join([tag("table", heading, *rows), more])

    @staticmethod
    def _cells(at: int, each: Prediction) -> tuple[str, ...]:
        return each.path or str(at), each.label or "", percent(each.confidence), each.flag.value


class FinishedRun:
    """A finished run, from `fullmatch.train` or `fullmatch.load`; its model is read when needed."""

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.trained = TrainedRun(Path(folder))
        self._predictors: dict[float, Predictor] = {}

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.trained.folder.path

    @cached_property
    def result(self) -> RunResult:
        """All that is in result.json."""
        return self.trained.result

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the probabilities."""
        return self.result.classes

    @property
    def accuracy(self) -> float | None:
        """On the test images, or else on held-out labels; None where neither was measured."""
        if self.result.teacher is not None:
            return self.result.teacher.top1
        return self.result.estimate.accuracy if self.result.estimate else None

    @property
    def interval(self) -> Interval | None:
        """The 95 % confidence interval of the accuracy."""
        measured = self.result.teacher or self.result.estimate
        return measured.interval if measured else None

    @cached_property
    def records(self) -> list[LogRecord]:
        """What was logged during training."""
        return self.trained.folder.read_records()

    def metrics(self) -> "pandas.DataFrame":
        """What was logged during training, one row per logged step; needs pandas."""
        return make_frame(metrics_table(self.records)).set_index("step")

    def predict(self, pictures: Pictures, *, unsure: float = UNSURE) -> PredictionList:
        """Label pictures: paths, folders, patterns, Pillow images, uint8 arrays, or several.

        Predictions whose confidence is below `unsure` are flagged.
        """
        return PredictionList(self.iter_predict(pictures, unsure=unsure))

    def iter_predict(self, pictures: Pictures, *, unsure: float = UNSURE) -> Iterator[Prediction]:
        """The same one by one, for more pictures than fit into memory."""
        return self.predictor(unsure).predict(list_pictures(pictures))

    def predict_proba(self, pictures: Pictures) -> NDArray[np.float32]:
        """Probabilities (pictures, classes), calibrated where labels were held out for it."""
        return self.predictor().probabilities(list_pictures(pictures))

    def predictor(self, unsure: float = UNSURE) -> Predictor:
        """The model with its calibration and its novelty detector, and notes about both."""
        if unsure not in self._predictors:
            self._predictors[unsure] = Predictor(self.trained, unsure=unsure)
        return self._predictors[unsure]

    def evaluate(self, data: str | PathLike[str] | None = None) -> Evaluation:
        """Scores on the test images of its own data, or of other data with the same classes."""
        return evaluate_run(self.trained.folder, None if data is None else fspath(data))

    def report(self, out: str | PathLike[str] | None = None) -> ReportPage:
        """Write its page, by default to report.html in the run folder."""
        return report(self.folder, out=out)

    def export(
        self,
        target: str | PathLike[str],
        *,
        check_with: Sequence[str] = (),
        overwrite: bool = False,
        runtime: str | PathLike[str] | None = None,
    ) -> ExportSummary:
        """Write the model as one ONNX file, after comparing it with PyTorch on pictures.

        A target that ends with .html is a page for browsers; `runtime` is then the `dist` folder
        of onnxruntime-web.
        """
        path = Path(target)
        if path.suffix.lower() == ".html":
            place = None if runtime is None else Path(runtime)
            return export_page(
                self.trained, path, place, check_with=check_with, overwrite=overwrite
            )
        return export_onnx(self.trained, path, check_with=check_with, overwrite=overwrite)

    def push(self, repository: str, *, private: bool = False) -> str:
        """Share the model on the Hugging Face hub, as user/name; returns its address.

        `fullmatch.load("hf:user/name")` loads it from there.
        """
        return push_model(self.trained, repository, private=private)

    def card(self) -> str:
        """The model card, in Markdown."""
        return render_card(self.trained)

    def __repr__(self) -> str:
        return f"<FinishedRun {self.folder}: {self._summary()}>"

    def _summary(self) -> str:
        if self.accuracy is None or self.interval is None:
            return "accuracy not known"
        low, high = (f"{100 * bound:.1f}" for bound in self.interval)
        kind = "test accuracy" if self.result.teacher else "accuracy on held-out labels"
        return f"{kind} {percent(self.accuracy)} (95 % interval {low} to {high})"

    def _repr_html_(self) -> str:
        result, name = self.result, display_name(self.trained.config.algorithm)
        parts = [
            tag("strong", capitalize(self._summary())),
            describe_comparison(result),
            f"{name} on {result.data}: {result.labels:,} labels, "
            f"{result.steps:,} steps, {result.seconds:.0f} s",
            tag("code", str(self.folder)),
        ]
        return tag("div", *(tag("p", part) for part in parts if part))


def load(run: str | PathLike[str]) -> FinishedRun:
    """A finished run with its model, ready to predict; or a model from the hub, as hf:user/name.

    Example::

        model = fullmatch.load("runs/pictures")
        print(model.predict("new.jpg").labels)
    """
    return FinishedRun(find_run(run))


def find_run(run: str | PathLike[str]) -> Path:
    """The folder of a run; a model on the hub is fetched unless it is on this machine."""
    return fetch_model(fspath(run)) if is_on_hub(fspath(run)) else Path(run)


def predict(
    run: str | PathLike[str], pictures: Pictures, *, unsure: float = UNSURE
) -> PredictionList:
    """Label pictures with a finished run's model; `load` it once to predict several times."""
    return load(run).predict(pictures, unsure=unsure)


def evaluate(run: str | PathLike[str], data: str | PathLike[str] | None = None) -> Evaluation:
    """Measure a finished run's model on the test images of its data, or of other data."""
    return evaluate_run(RunFolder.existing(find_run(run)), None if data is None else fspath(data))
