"""Every file of a run checked: against its hash, and by reading it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from fullmatch.data import Split
from fullmatch.errors import UserError
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.leakage import read_learned
from fullmatch.experiment.settings import named_code, read_config
from fullmatch.storage.checkpoints import DamagedCheckpoint, complete_checkpoints, load_checkpoint
from fullmatch.storage.manifest import FileState
from fullmatch.storage.run_folder import RunFolder


class FileCheck(NamedTuple):
    """What became of a file of a run."""

    name: str
    state: FileState
    details: str = ""

    @property
    def usable(self) -> bool:
        return self.state in (FileState.WHOLE, FileState.UNCHECKED)


def verify_run(folder: RunFolder) -> list[FileCheck]:
    """All files of a run and of its baseline."""
    checks = [*check_files(folder), *check_checkpoints(folder)]
    baseline = RunFolder(folder.baseline)
    if folder.has_baseline:
        name = baseline.path.name
        checks += [check._replace(name=f"{name}/{check.name}") for check in verify_run(baseline)]
    return checks


def check_files(folder: RunFolder) -> Iterator[FileCheck]:
    """Hashes first, then whether the file can be read; a file without a hash is only read."""
    try:
        manifest = folder.read_manifest()
    except UserError as error:
        manifest = None
        yield FileCheck(folder.manifest.name, FileState.DAMAGED, reason_of(error))
    for path, read in readers_of(folder).items():
        state = FileState.UNCHECKED if manifest is None else manifest.state_of(path)
        if state is FileState.MISSING:
            yield FileCheck(path.name, state, folder.repair)
            continue
        if not path.exists():
            continue
        try:
            read()
        except UserError as error:
            yield FileCheck(path.name, FileState.DAMAGED, reason_of(error))
            continue
        details = "changed after training" if state is FileState.CHANGED else ""
        yield FileCheck(path.name, state, details or describe_missing_hash(state))


def describe_missing_hash(state: FileState) -> str:
    return "can be read; the run kept no hash of it" if state is FileState.UNCHECKED else ""


def readers_of(folder: RunFolder) -> dict[Path, Callable[[], object]]:
    readers: dict[Path, Callable[[], object]] = {
        folder.config: lambda: read_config(folder),
        folder.split: lambda: Split.load(folder.split),
        folder.metrics: folder.read_records,
        folder.learned: lambda: read_learned(folder),
        folder.features: folder.read_features,
        folder.map: folder.read_map,
        folder.findings: folder.read_findings,
        folder.strategies: folder.read_strategies,
        folder.rollbacks: folder.read_rollbacks,
    }
    if folder.finished:
        readers |= {
            folder.model: lambda: Classifier.load(folder.model, named_code(folder)),
            folder.predictions: folder.read_predictions,
            folder.result: folder.read_result,
        }
    return readers


def check_checkpoints(folder: RunFolder) -> Iterator[FileCheck]:
    """Checkpoints carry their own hashes."""
    for place in complete_checkpoints(folder.checkpoints):
        name = f"{folder.checkpoints.name}/{place.name}"
        try:
            load_checkpoint(place)
        except DamagedCheckpoint as error:
            yield FileCheck(name, FileState.DAMAGED, str(error))
        else:
            yield FileCheck(name, FileState.WHOLE)


def reason_of(error: UserError) -> str:
    return " ".join(str(error).split())
