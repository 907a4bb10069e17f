"""Check pictures before training: problems, and what training would do."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from fullmatch import data as sources
from fullmatch.api.check_text import format_check, plan_training
from fullmatch.api.pages import embed_page
from fullmatch.data.quality.check import check_pictures, check_source, check_table
from fullmatch.data.quality.data_check import DataCheck
from fullmatch.data.quality.findings import DataFinding
from fullmatch.data.quality.photo_search import PhotoOptions
from fullmatch.data.sources.places import is_table
from fullmatch.display.stages import show_stages
from fullmatch.display.terminal import showing
from fullmatch.errors import UserError
from fullmatch.experiment.photo_pass import describe_stores
from fullmatch.experiment.plan_types import TrainingPlan
from fullmatch.inference.check_page import render_check_page
from fullmatch.pages.frame import require_replaceable, write_page
from fullmatch.storage.atomic import write_text


@dataclass(frozen=True)
class CheckReport:
    """What `check` found; printed it is a text, and notebooks show it with pictures."""

    data: str
    result: DataCheck
    plan: TrainingPlan | None  # None where training would not start
    minutes: float | None = None

    @property
    def can_train(self) -> bool:
        """Whether training would start."""
        return self.result.can_train

    @property
    def findings(self) -> Sequence[DataFinding]:
        """All problems, the worst first."""
        return self.result.findings

    @property
    def html(self) -> str:
        """The page with thumbnails."""
        return render_check_page(self.result)

    def write(self, path: str | PathLike[str]) -> Path:
        """Write all findings to a JSON file, and the page beside it; returns the page."""
        path = Path(path)
        seconds = None if self.plan is None else self.plan.seconds
        minutes = None if seconds is None else round(seconds / 60, 1)
        content = self.result.to_json() | {"minutes": minutes}
        write_text(path, json.dumps(content, indent=1) + "\n")
        page = page_beside(path)
        write_page(page, self.html)
        return page

    @property
    def lines(self) -> list[str]:
        """What `fullmatch check` prints."""
        limit = [] if self.minutes is None else ["--minutes", f"{self.minutes:g}"]
        return list(format_check(self.result, shlex.join([self.data, *limit]), self.plan))

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        return embed_page(self.html)


def check(
    data: str | PathLike[str], *, minutes: float | None = None, progress: bool = True
) -> CheckReport:
    """Look for problems in pictures before time is spent on training; nothing is changed.

    `minutes` is how long training may take, which the plan depends on; 10 by default.
    """
    name = fspath(data)
    if name in sources.DATASETS:
        raise UserError(
            f"check is for your own pictures, and {name} is a benchmark; "
            f"train on it with: fullmatch train {name}"
        )
    path = Path(name).expanduser()
    if path.suffix.lower() == ".csv" and not path.exists():
        raise UserError(f"no such file: {path}; check the path")
    with showing(progress):
        result = check_data(name)
    plan = plan_training(result, name, minutes) if result.can_train else None
    return CheckReport(name, result, plan, minutes)


def check_data(data: str) -> DataCheck:
    """Check with bars."""
    path = Path(data).expanduser()
    with show_stages() as stages:
        report_reading = stages.begin_quietly("reading")
        show_features = stages.begin("features")
        photos = PhotoOptions(
            lambda stores: describe_stores(stores, show_features),
            stages.begin_quietly("comparing"),
        )
        if path.is_dir() or path.suffix.lower() == ".csv":
            return check_pictures(path, report_reading, photos)
        if is_table(data):
            return check_table(data, report_reading, photos)
        return check_source(sources.load(data), report_reading, photos)


def resolve_output(out: Path | None, pictures: Path) -> Path | None:
    """Where to write the findings: never inside the folder of pictures; None for nowhere."""
    path = out or Path("check.json")
    if pictures.is_dir() and path.resolve().is_relative_to(pictures.resolve()):
        if out is None:
            return None
        raise UserError(f"{out} is inside your folder of pictures; choose another --out")
    if path.exists() and not is_check_file(path):
        raise UserError(f"{path} exists and was not written by check; choose another --out")
    if not path.parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {path.parent}")
    if page_beside(path) == path:
        raise UserError(f"{path} is where the page with pictures goes; end --out with .json")
    require_replaceable(page_beside(path))
    return path


def page_beside(output: Path) -> Path:
    """The page with pictures, next to the file of findings."""
    return output.with_suffix(".html")


def is_check_file(path: Path) -> bool:
    """Whether `check` wrote this file, so that it may be replaced."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and "minutes" in content
