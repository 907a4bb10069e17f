"""Which runs a table needs, which of them are finished, and what the others will cost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fullmatch.config import ExperimentConfig
from fullmatch.errors import UserError
from fullmatch.reproduce import provenance
from fullmatch.reproduce.grid import TableCell, TableRow, config_for, facts_of
from fullmatch.reproduce.ledger import Ledger
from fullmatch.reproduce.rates import MeasuredRate, PlannedCase, nearest_rate
from fullmatch.reproduce.recording import make_entry
from fullmatch.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from fullmatch.experiment.run import Run

ASSUMED_SPEED = 16.2  # steps per second of TorchSSL on CIFAR-10, if nothing was measured
LINE_BYTES = 400  # of the log


class RunStatus(Enum):
    """The state of a run; the values are shown to users."""

    FINISHED = "finished"
    TRAINED = "finished, not recorded yet"
    STOPPED = "to be resumed"
    NEW = "to be run"


@dataclass(frozen=True)
class PlannedRun:
    """One run that a table needs."""

    row: TableRow
    cell: TableCell
    fold: int
    config: ExperimentConfig
    folder: Path
    status: RunStatus
    budget: str = "paper"

    @property
    def name(self) -> str:
        budget = "" if self.budget == "paper" else f" ({self.budget})"
        return f"{self.cell} {self.row.name}{budget} fold {self.fold}"


@dataclass(frozen=True)
class RunCost:
    """What a run will take, and where its assumed speed comes from."""

    hours: float
    gigabytes: float
    speed: float  # steps per second
    source: str
    exact: bool  # measured with the same data, network, method, kind of step and device


@dataclass(frozen=True)
class RunOutcome:
    """What happened to a planned run."""

    run: PlannedRun
    message: str
    skipped: bool = False  # it could not be run


def plan_runs(
    rows: Sequence[TableRow],
    cells: Sequence[TableCell],
    folds: Sequence[int],
    *,
    ledger: Ledger,
    runs: Path,
    budget: str | None = None,
    steps: int | None = None,
) -> list[PlannedRun]:
    """Every run of the grid and its status; a run in the ledger needs no folder."""
    if steps is not None and steps < 1:
        raise UserError(f"steps is {steps}, expected 1 or more")
    recorded = recorded_identities(ledger)
    planned: list[PlannedRun] = []
    budget = budget or "paper"
    for cell in cells:
        for row in rows:
            for fold in folds:
                config = config_for(row, cell, fold, steps, budget)
                identity = provenance.identity(provenance.table_of(config))
                # Settings are part of the name, so that changed settings get another folder.
                name = f"{cell}-{row.key}-{fold}-{config.training.steps}-{identity[:6]}"
                folder = runs / name.replace(":", "-")
                status = RunStatus.FINISHED if identity in recorded else find_status(folder)
                planned.append(PlannedRun(row, cell, fold, config, folder, status, budget))
    return planned


def recorded_identities(ledger: Ledger) -> set[str]:
    identities: set[str] = set()
    for entry in ledger.entries():
        try:
            identities.add(provenance.identity(entry.config))
        except UserError:
            continue  # it has settings that no longer exist
    return identities


def find_status(folder: Path) -> RunStatus:
    """The status of a run that is not in the ledger."""
    run = RunFolder(folder)
    if run.finished:
        return RunStatus.TRAINED
    return RunStatus.STOPPED if run.config.exists() else RunStatus.NEW


def find_obstacle(planned: PlannedRun) -> str | None:
    """Why a run cannot be started yet; None if nothing is known to prevent it."""
    if planned.status is not RunStatus.NEW:
        return None
    if planned.config.algorithm.missing:
        return f"needs {planned.config.algorithm.missing}"
    benchmark = facts_of(planned.cell.data)
    if planned.cell.labels > benchmark.train:
        return f"needs more than its {benchmark.train:,} images"
    return None if benchmark.url or benchmark.is_present() else "needs its data"


def estimate_cost(
    planned: PlannedRun, rates: Sequence[MeasuredRate], device: str | None = None
) -> RunCost:
    """Hours at the rate of the same case, or of the nearest one; `device` is this machine's."""
    training = planned.config.training
    case = PlannedCase.of(planned.config, device or this_device())
    speed, source, exact = ASSUMED_SPEED, "assumed", False
    if (rate := nearest_rate(case, rates)) is not None:
        speed, source = rate.steps_per_second, rate.describe(case)
        exact = all(rate.matches(case))
    copies = 2 * 3 + 1  # two checkpoints of student, teacher and momentum; and the model
    weights = count_parameters(planned.config.model.name, planned.cell.data)
    size = 4 * copies * weights + LINE_BYTES * training.steps / training.log_every
    remaining = training.steps - steps_done(planned)
    return RunCost(remaining / speed / 3600, size / 1e9, speed, source, exact)


@cache
def this_device() -> str:
    from fullmatch.experiment.machine import choose_device, device_name

    return device_name(choose_device())


def steps_done(planned: PlannedRun) -> int:
    """Steps before the newest checkpoint, which need not be repeated."""
    if planned.status is RunStatus.TRAINED:
        return planned.config.training.steps
    names = [path.name for path in RunFolder(planned.folder).checkpoints.glob("step-*")]
    numbers = [name.removeprefix("step-") for name in names]
    return max((int(number) for number in numbers if number.isdigit()), default=0)


@cache
def count_parameters(model: str, data: str) -> int:
    """The number of a network's parameters, without allocating them."""
    import torch

    from fullmatch.models import build_network

    benchmark = facts_of(data)
    with torch.device("meta"):
        body = build_network(model, benchmark.num_classes, benchmark.shape)
    return sum(parameter.numel() for parameter in body.parameters())


def execute_runs(
    planned: Sequence[PlannedRun], ledger: Ledger, finish: Callable[["Run"], object]
) -> Iterator[RunOutcome]:
    """Train and record what is missing, and yield what happened to each run.

    `finish` trains a run that was started or resumed to its end.
    A run that fails, or that another process has taken in the meantime, does not stop the others.
    """
    for item in planned:
        if item.status is RunStatus.FINISHED:
            continue
        current = replace(item, status=find_status(item.folder))
        trained_elsewhere = RunStatus.TRAINED is current.status is not item.status
        if ledger.has(item.folder.name) or trained_elsewhere:
            yield RunOutcome(item, "another process has finished it in the meantime")
            continue
        try:
            notes = [] if current.status is RunStatus.TRAINED else train(current, finish)
            entry = make_entry(current.folder, code_of_run(current.folder), notes)
            yield RunOutcome(current, f"recorded in {ledger.add(entry)}")
        except UserError as error:
            yield RunOutcome(current, f"skipped: {error}", skipped=True)


def code_of_run(folder: Path) -> provenance.CodeVersion:
    """The current code if it made the whole run; unknown otherwise."""
    if provenance.made_by_current_code(folder):
        return provenance.current_code()
    return provenance.UNKNOWN_CODE


def train(item: PlannedRun, finish: Callable[["Run"], object]) -> list[str]:
    """Start or resume a run and finish it; returns notes on how it was resumed."""
    from fullmatch.experiment.start import resume, start

    if item.status is RunStatus.NEW:
        try:
            run = start(item.config, RunFolder(item.folder, new=True))
        except UserError:
            if find_status(item.folder) is RunStatus.NEW:
                raise
            raise UserError("another process has just started it") from None
        provenance.write_signature(item.folder)
    else:
        run = resume(RunFolder(item.folder))
        if not provenance.made_by_current_code(item.folder):  # now two versions share the run
            (item.folder / provenance.SIGNATURE).unlink(missing_ok=True)
    finish(run)
    return list(run.recovery)
