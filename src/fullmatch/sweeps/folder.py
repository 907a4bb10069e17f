"""The folder of a sweep: what it is, which runs are done, and who is working on which."""

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args, get_type_hints

import tomli_w

from fullmatch.algorithms import name_of
from fullmatch.config import ExperimentConfig, config_table
from fullmatch.errors import UserError
from fullmatch.experiment.settings import read_config, resolve
from fullmatch.storage.atomic import explained_errors
from fullmatch.storage.json_files import from_json, read_json, write_json
from fullmatch.storage.locks import locked
from fullmatch.storage.private_folders import remove_leftovers
from fullmatch.storage.run_folder import RunFolder, read_file
from fullmatch.sweeps.score import RunScore, ScoreKind
from fullmatch.sweeps.search import OptunaSearch
from fullmatch.sweeps.space import (
    MOST_RUNS,
    Choice,
    SweepPoint,
    SweepRun,
    ValueRange,
    list_corners,
    list_grid,
    parse_choices,
)


@dataclass(frozen=True, kw_only=True)
class SweepRequest:
    """What was asked for. Whoever asks for the same works on the same sweep."""

    base: dict[str, Any]  # what all runs have in common, as it was given
    settings: tuple[str, ...]  # as in `--set`
    seeds: tuple[int, ...]
    trials: int | None = None  # None: a grid; may grow later
    score: ScoreKind = ScoreKind.HELD_OUT

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The settings that vary."""
        return tuple(choice for choice in parse_choices(self.settings) if choice.varies)

    @property
    def constants(self) -> list[str]:
        """Settings with one value, which all runs have in common; as in `--set`."""
        single = [choice for choice in parse_choices(self.settings) if not choice.varies]
        return [f"{choice.name}={value}" for choice in single for value in choice.values]


@dataclass(frozen=True)
class SweepFolder:
    """A sweep on disk."""

    path: Path

    @property
    def definition(self) -> Path:
        return self.path / "sweep.json"

    @property
    def config(self) -> Path:
        """What all runs have in common, settled once."""
        return self.path / "config.toml"

    @property
    def exists(self) -> bool:
        return self.definition.exists()

    @property
    def resume_command(self) -> str:
        return f"fullmatch sweep --out {shlex.quote(str(self.path))}"

    def create(self, base: ExperimentConfig, request: SweepRequest) -> None:
        """Make the folder, or join a sweep that another process has just made."""
        if self.path.exists() and not self.exists and not is_unused(self.path):
            raise UserError(f"{self.path} exists already and is not a sweep; choose another --out")
        with explained_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            with locked(self.path, wait=True):
                if not self.exists:
                    self.config.write_text(tomli_w.dumps(config_table(base, name_of)), "utf-8")
                    write_json(self.definition, request)

    def read_request(self) -> SweepRequest:
        advice = "remove it and start the sweep again"
        return read_file(
            self.definition, lambda path: from_json(SweepRequest, read_json(path)), advice
        )

    def join(self, request: SweepRequest) -> None:
        """Work on the sweep in this folder; `UserError` if it is another one."""
        with locked(self.path, wait=True):
            mine = self.read_request()
            if replace(request, trials=None) != replace(mine, trials=None) or (
                (request.trials is None) != (mine.trials is None)
            ):
                raise UserError(
                    f"{self.path} holds another sweep ({describe_request(mine)}); choose another "
                    f"--out, or continue that one with: {self.resume_command}"
                )
            if (request.trials or 0) > (mine.trials or 0):
                write_json(self.definition, request)

    def open(self) -> "Sweep":
        """Ready to claim runs."""
        if not self.exists:
            raise UserError(f"{self.path} is not a sweep; start one with: fullmatch sweep DATA")
        return Sweep(self, self.read_request())


class Sweep:
    """The runs of a sweep; each is claimed by one process, and has a score when it is done."""

    def __init__(self, folder: SweepFolder, request: SweepRequest) -> None:
        self.folder, self.request, self.path = folder, request, folder.path
        self.choices = request.choices
        self.search: OptunaSearch | None = None
        if request.trials is not None:
            self.search = OptunaSearch(self.path / "study.journal", self.choices, self.integers)

    @cached_property
    def integers(self) -> tuple[str, ...]:
        return find_integers(self.folder.config, self.choices)

    @cached_property
    def base(self) -> ExperimentConfig:
        return read_config(RunFolder(self.path))

    def runs_of(self, point: SweepPoint) -> list[SweepRun]:
        return [SweepRun(point, seed) for seed in self.request.seeds]

    def config_of(self, run: SweepRun) -> ExperimentConfig:
        return resolve_point(self.folder.config, run.point, run.seed)

    def run_folder(self, run: SweepRun) -> RunFolder:
        return RunFolder(self.path / "runs" / run.name)

    def score_file(self, run: SweepRun) -> Path:
        return self.path / "scores" / f"{run.name}.json"

    def read_score(self, run: SweepRun) -> RunScore | None:
        """None while it is not done."""
        path = self.score_file(run)
        if not path.exists():
            return None
        advice = f"delete it, then run: {self.folder.resume_command}"
        return read_file(path, lambda path: from_json(RunScore, read_json(path)), advice)

    def write_score(self, run: SweepRun, score: RunScore) -> None:
        path = self.score_file(run)
        with explained_errors(path):
            path.parent.mkdir(exist_ok=True)
            write_json(path, score)

    def points(self) -> list[SweepPoint]:
        """All combinations; those of a search as far as it has come."""
        if self.search is None:
            return list_grid(self.choices)
        with locked(self.path, wait=True):
            self.search.record(self.mean_score)
            return self.search.points()

    def mean_score(self, point: SweepPoint) -> float | None:
        """What a search is told: the mean over the seeds; a run that diverged counts as 0."""
        scores = [self.read_score(run) for run in self.runs_of(point)]
        done = [score.score or 0.0 for score in scores if score is not None]
        return sum(done) / len(done) if len(done) == len(scores) else None

    @contextmanager
    def claim(self) -> Iterator[SweepRun | None]:
        """Hold a run that is not done and that nobody else holds; None if there is none left."""
        with ExitStack() as held:
            with locked(self.path, wait=True):
                remove_leftovers(self.path / "scores")
                run = self.find_free(held)
            yield run

    def find_free(self, held: ExitStack) -> SweepRun | None:
        if self.search is None:
            return self.hold_first(list_grid(self.choices), held)
        self.search.record(self.mean_score)
        points = self.search.points()
        run = self.hold_first(points, held)
        if run is None and len(points) < (self.request.trials or 0):
            run = self.hold_first([self.search.suggest()], held)
        return run

    def hold_first(self, points: list[SweepPoint], held: ExitStack) -> SweepRun | None:
        for run in (run for point in points for run in self.runs_of(point)):
            if self.score_file(run).exists():
                continue
            place = self.path / "claims" / run.name
            with explained_errors(place):
                place.mkdir(parents=True, exist_ok=True)
            with ExitStack() as attempt:
                try:
                    attempt.enter_context(locked(place))
                except UserError:  # another process holds it
                    continue
                if not self.score_file(run).exists():  # it may have become done in between
                    held.enter_context(attempt.pop_all())
                    return run
        return None


def is_unused(folder: Path) -> bool:
    """Whether nothing is in it but what a process killed while making a sweep leaves."""
    left = {".lock", "config.toml", ".sweep.json"}
    return folder.is_dir() and all(
        path.name in left or path.name.startswith(".sweep.json.") for path in folder.iterdir()
    )


def resolve_point(config: Path, point: SweepPoint, seed: int) -> ExperimentConfig:
    """The settings of a run; another algorithm comes with its own."""
    values = dict(point.values)
    algorithm = values.pop("algorithm.name", None)
    assignments = [f"{name}={value}" for name, value in values.items()]
    return resolve(file=config, algorithm=algorithm, seed=seed, assignments=assignments)


def check_request(config: Path, request: SweepRequest) -> None:
    """`UserError` for a value that some run would refuse, before anything is made."""
    if request.trials is not None and request.trials < 1:
        raise UserError(f"--trials is {request.trials}, expected 1 or more")
    choices = request.choices
    points = list_grid(choices) if request.trials is None else []
    if len(points) * len(request.seeds) > MOST_RUNS:
        raise UserError(f"this grid has more than {MOST_RUNS:,} runs; list fewer values")
    for point in points or list_corners(choices):
        resolve_point(config, point, request.seeds[0])
    find_integers(config, choices)


def find_integers(config: Path, choices: tuple[Choice, ...]) -> tuple[str, ...]:
    """Names of the settings with a range that are whole numbers; the others must be numbers."""
    ranges = [choice for choice in choices if isinstance(choice, ValueRange)]
    first = next(list_corners(choices), None)
    integers: list[str] = []
    for choice in ranges:
        assert first is not None
        types = field_types(resolve_point(config, first, 0), choice.name)
        if int in types:
            integers.append(choice.name)
        elif float not in types:
            raise UserError(f"{choice.name} is not a number, and has no range; list its values")
    return tuple(integers)


def field_types(config: ExperimentConfig, name: str) -> tuple[Any, ...]:
    """The type of a setting, or the types it may have."""
    *parents, last = name.split(".")
    owner: Any = config
    for part in parents:
        owner = getattr(owner, part)
    hint = get_type_hints(type(owner))[last]
    return get_args(hint) or (hint,)


def describe_request(request: SweepRequest) -> str:
    seeds = ", ".join(map(str, request.seeds))
    return f"{' '.join(request.settings) or 'no settings'}, seeds {seeds}, {request.score} score"
