"""Files of a run that cannot be used, and that its newest checkpoint can make again."""

from collections.abc import Callable
from pathlib import Path

from fullmatch.errors import UserError
from fullmatch.experiment.classifier import Classifier
from fullmatch.experiment.leakage import read_learned
from fullmatch.experiment.settings import named_code
from fullmatch.storage.checkpoints import newest_checkpoint
from fullmatch.storage.private_folders import remove_leftovers
from fullmatch.storage.run_folder import RunFolder

CHANGED = "it was changed after training"


def find_unusable(folder: RunFolder) -> dict[Path, str]:
    """Files that are made from a checkpoint and cannot be used, each with the reason."""
    readers: dict[Path, Callable[[], object]] = {
        folder.learned: lambda: read_learned(folder),
    }
    if folder.finished:
        readers |= {
            folder.manifest: folder.read_manifest,
            folder.result: folder.read_result,
            folder.predictions: folder.read_predictions,
            folder.model: lambda: Classifier.load(folder.model, named_code(folder)),
        }
    unusable: dict[Path, str] = {}
    for path, read in readers.items():
        try:
            read()
        except UserError as error:
            unusable[path] = str(error)
    if folder.finished and folder.manifest not in unusable:
        for path in folder.changed_files():
            unusable.setdefault(path, f"{path}: {CHANGED}")
    return unusable


def prepare_repair(folder: RunFolder) -> list[str]:
    """Set unusable files aside, so that resuming writes them again; returns notes about it.

    Nothing is touched where no checkpoint is left to make them from.
    """
    unusable = find_unusable(folder)
    if not unusable:
        return []
    if newest_checkpoint(folder.checkpoints)[0] is None:
        reason = next(iter(unusable.values()))
        raise UserError(
            f"{reason.partition(';')[0]}; no checkpoint is left to write it again from: restore "
            f"the file, or train again with: fullmatch train --config {folder.config} --out NEW"
        )
    with folder.locked(), folder.writing():
        for path in unusable:
            folder.set_aside(path)
        if folder.finished:  # the result is written last, and says that all is there
            folder.set_aside(folder.result)
        folder.manifest.unlink(missing_ok=True)
    return [f"{reason.partition(';')[0]}: writing it again" for reason in unusable.values()]


def prepare_repairs(folder: RunFolder) -> list[str]:
    """The same for a run and its baseline; a run that was killed before its manifest gets one.

    What killed processes have left half written is removed.
    """
    remove_leftovers(folder.path)
    notes = prepare_repair(folder)
    baseline = RunFolder(folder.baseline)
    if baseline.started:
        notes += prepare_repair(baseline)
    if folder.finished and not folder.manifest.exists():
        with folder.locked(), folder.writing():
            folder.write_manifest()
    return notes
