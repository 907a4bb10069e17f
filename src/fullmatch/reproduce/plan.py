"""Which runs a table needs, which of them are done, and what the rest will take."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fullmatch.config import ExperimentConfig
from fullmatch.data import DATASETS
from fullmatch.errors import UserError
from fullmatch.experiment import presets
from fullmatch.reproduce import provenance
from fullmatch.reproduce.grid import Cell, Row, config_for
from fullmatch.reproduce.ledger import Ledger, record
from fullmatch.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from fullmatch.experiment.run import Run

USUAL_SPEED = 16.2  # steps a second of TorchSSL on CIFAR-10, where nothing was measured
LEFT_OUT = "left out"
LINE = 400  # bytes of a line of the log

Status = Literal["finished", "trained", "stopped", "new"]
WORDS = {
    "finished": "finished",
    "trained": "finished, to be recorded",
    "stopped": "to be resumed",
    "new": "to be run",
}


@dataclass(frozen=True)
class Planned:
    """One run that a table needs."""

    row: Row
    cell: Cell
    fold: int
    config: ExperimentConfig
    folder: Path
    status: Status

    @property
    def name(self) -> str:
        return f"{self.cell} {self.row.name} fold {self.fold}"


class Estimate(NamedTuple):
    """What a run will take, and where the speed comes from."""

    hours: float
    gigabytes: float
    speed: float
    source: str


def steps_of(cell: Cell, budget: str | None, steps: int | None) -> int | None:
    """The steps asked for; None: those of the preset."""
    if steps is not None:
        if steps < 1:
            raise UserError(f"steps is {steps}, expected 1 or more")
        return steps
    # Digits have a budget of their own: a million steps on them would be absurd.
    return None if budget is None or cell.data == "digits" else presets.BUDGETS[budget]


def plan(
    rows: Sequence[Row],
    cells: Sequence[Cell],
    folds: Sequence[int],
    *,
    ledger: Ledger,
    runs: Path,
    budget: str | None = None,
    steps: int | None = None,
) -> list[Planned]:
    """Every run of the grid, and how far it is; a run in the ledger needs no folder."""
    done: dict[str, str] = {}
    for entry in ledger.entries():
        try:
            done[provenance.identity(entry["config"])] = entry["name"]
        except UserError:
            continue  # of settings that are no more
    found: list[Planned] = []
    for cell in cells:
        for row in rows:
            for fold in folds:
                config = config_for(row, cell, fold, steps_of(cell, budget, steps))
                identity = provenance.identity(provenance.table_of(config))
                # The settings are part of the name, so that changed ones get a folder of their own.
                name = f"{cell}-{row.key}-{fold}-{config.training.steps}-{identity[:6]}"
                folder = runs / name
                status = "finished" if identity in done else status_of(folder)
                found.append(Planned(row, cell, fold, config, folder, status))
    return found


def status_of(folder: Path) -> Status:
    run = RunFolder(folder)
    if run.result.exists():
        return "trained"
    return "stopped" if run.config.exists() else "new"


def obstacle(planned: Planned) -> str | None:
    """Why a run cannot be done as things stand, where that can be told beforehand."""
    if planned.status != "new":
        return None
    if getattr(planned.config.algorithm, "embeddings", None) == "":
        return "needs embeddings"
    facts = DATASETS[planned.cell.data]
    if planned.cell.labels > facts.train:
        return f"needs more than its {facts.train:,} images"
    return None if facts.url or facts.present() else "needs its data"


def estimate(planned: Planned, entries: Sequence[dict[str, Any]]) -> Estimate:
    """Hours by the ledger's speed of the same network, best of the same method and data too.

    Of several of the same day the quickest counts: the others may have shared their device.
    """
    config = provenance.table_of(planned.config)
    training = planned.config.training

    def likeness(entry: dict[str, Any]) -> tuple[bool, bool, str, float]:
        theirs = entry["config"]
        return (
            theirs["data"]["name"] == config["data"]["name"],
            theirs["algorithm"]["name"] == config["algorithm"]["name"],
            entry["date"],
            entry["steps_per_second"],
        )

    def same_step(theirs: dict[str, Any]) -> bool:
        ours = (config["model"], training.weak_gradient)
        return (theirs["model"], theirs["training"].get("weak_gradient", True)) == ours

    alike = [e for e in entries if e["steps_per_second"] and same_step(e["config"])]
    speed, source = USUAL_SPEED, "assumed"
    if alike:
        nearest = max(alike, key=likeness)
        speed, source = nearest["steps_per_second"], f"as measured on {nearest['device']}"
    checkpoints = 2 * 3 + 1  # two of student, teacher and momentum; and the model
    weights = parameters(planned.config.model.name, planned.cell.data)
    size = 4 * checkpoints * weights + LINE * training.steps / training.log_every
    left = training.steps - steps_done(planned)
    return Estimate(left / speed / 3600, size / 1e9, speed, source)


def steps_done(planned: Planned) -> int:
    """Steps that need not be done again: those before the newest checkpoint."""
    if planned.status == "trained":
        return planned.config.training.steps
    saved = RunFolder(planned.folder).checkpoints.glob("step-*")
    numbers = [place.name.removeprefix("step-") for place in saved]
    return max((int(number) for number in numbers if number.isdigit()), default=0)


@cache
def parameters(model: str, data: str) -> int:
    """How many a network has; nothing is allocated to count them."""
    import torch

    from fullmatch.models import network

    facts = DATASETS[data]
    with torch.device("meta"):
        body = network(model, facts.num_classes, facts.shape)
    return sum(parameter.numel() for parameter in body.parameters())


def carry_out(
    planned: Sequence[Planned], ledger: Ledger, follow: Callable[["Run"], None]
) -> Iterator[tuple[Planned, str]]:
    """Train what is missing and record it; yields what happened to each run.

    A run that cannot be done is said and passed over: it must not hold up the others. Neither must
    one that another process, started on the same table, has taken since.
    """
    for item in planned:
        if item.status == "finished":
            continue
        status = status_of(item.folder)
        if ledger.has(item.folder.name) or status == "trained" != item.status:
            yield item, "another process has done it meanwhile"
            continue
        item = replace(item, status=status)
        try:
            notes = [] if item.status == "trained" else train(item, follow)
            fresh = provenance.made_here(item.folder)
            entry = record(item.folder, fresh=fresh, notes=notes)
            yield item, f"recorded in {ledger.add(entry)}"
        except UserError as error:
            yield item, f"{LEFT_OUT}: {error}"


def train(item: Planned, follow: Callable[["Run"], None]) -> list[str]:
    """Start or resume a run and see it through; says how it was resumed."""
    from fullmatch.experiment.run import resume, start

    if item.status == "new":
        try:
            run = start(item.config, RunFolder(item.folder, new=True))
        except UserError:
            if status_of(item.folder) == "new":
                raise
            raise UserError("another process has just begun it") from None
        provenance.sign(item.folder)
    else:
        run = resume(RunFolder(item.folder))
        if not provenance.made_here(item.folder):  # nor will it be by one code in the end
            (item.folder / provenance.SIGNATURE).unlink(missing_ok=True)
    follow(run)
    return list(run.recovery)
