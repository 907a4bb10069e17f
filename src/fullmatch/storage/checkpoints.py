"""Atomic checkpoints: written to a temporary folder, synced, then renamed into place."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from fullmatch.files.reading import UnusableFile, require_tensors
from fullmatch.storage.json_files import from_json, read_json, to_json
from fullmatch.storage.tensors import write_tensors

KEPT = 2
FORMAT = 1  # raised when what a checkpoint holds changes
UNREADABLE = (ValueError, KeyError, TypeError, SafetensorError)
NAME = re.compile(r"step-\d{9}")
MOST_THREADS = 1024
TENSORS, FACTS = "state.safetensors", "state.json"


@dataclass(frozen=True, kw_only=True)
class CheckpointFacts:
    """Metadata of a checkpoint: the step, and what identifies the run."""

    step: int
    config: str  # fingerprint of the settings
    data: str  # fingerprint of pictures and labels
    metrics: tuple[str, ...]  # names of the metrics that are summed since the last log record
    metrics_size: int  # of metrics.jsonl, in bytes
    seconds: float  # of training
    started: str = ""  # a sentence about the weights that the run started from
    threads: int
    versions: dict[str, str]


class Checkpoint(NamedTuple):
    """The tensors of a training state, and the facts stored with them."""

    tensors: dict[str, Tensor]
    facts: CheckpointFacts


class DamagedCheckpoint(Exception):
    """A checkpoint that cannot be used, and why."""


def save_checkpoint(folder: Path, state: dict[str, Tensor], facts: CheckpointFacts) -> Path:
    """Write a checkpoint; only the newest two are kept."""
    step = facts.step
    folder.mkdir(exist_ok=True)
    place = folder / f"step-{step:09d}"
    if place.exists():
        try:
            load_checkpoint(place)
            remove_older(folder, place)  # a process may have been killed just before
            return place  # a state is a function of its step: this is it already
        except DamagedCheckpoint:
            shutil.rmtree(place)
    temporary = folder / f".step-{step:09d}.{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        write_tensors(temporary / TENSORS, state)
        table = {"format": FORMAT, **to_json(facts)}
        text = json.dumps(table | {"sha256": digest(temporary / TENSORS, table)}, indent=1)
        (temporary / FACTS).write_text(text + "\n", encoding="utf-8")
        for written in (temporary / TENSORS, temporary / FACTS, temporary):
            sync(written)
        temporary.rename(place)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)  # a full disk needs the room
        raise
    sync(folder)
    remove_older(folder, place)
    return place


def remove_older(folder: Path, place: Path) -> None:
    """Keep a checkpoint and the one before; what killed processes have left goes too."""
    # Later ones are damaged, or training went back; they must not push out what was just saved.
    earlier = [each for each in complete_checkpoints(folder) if each.name <= place.name]
    for old in [*folder.glob(".step-*"), *earlier[:-KEPT]]:
        shutil.rmtree(old)


def load_checkpoint(place: Path) -> Checkpoint:
    """One checkpoint; `DamagedCheckpoint` if a single byte is not as written."""
    try:
        table = read_json(place / FACTS)
        require_tensors(place / TENSORS)
        if table.pop("sha256") != digest(place / TENSORS, table):
            raise DamagedCheckpoint("its contents have changed")
        if table["format"] != FORMAT:
            raise DamagedCheckpoint("another version of fullmatch saved it")
        facts = from_json(CheckpointFacts, table)
        check_facts(facts)
        return Checkpoint(load_file(place / TENSORS), facts)
    except OSError as error:
        raise DamagedCheckpoint(f"{Path(str(error.filename)).name}: {error.strerror}") from None
    except UnusableFile as error:
        raise DamagedCheckpoint(f"unreadable: {error}") from None
    except UNREADABLE as error:
        raise DamagedCheckpoint(f"unreadable: {type(error).__name__}") from None


def check_facts(facts: CheckpointFacts) -> None:
    """`UnusableFile` for numbers that no run has."""
    limits = {"step": 0, "metrics_size": 0, "seconds": 0, "threads": 1}
    if wrong := [name for name, least in limits.items() if getattr(facts, name) < least]:
        raise UnusableFile(f"{wrong[0]} is {getattr(facts, wrong[0])}")
    if facts.threads > MOST_THREADS:
        raise UnusableFile(f"threads is {facts.threads}")


def digest(tensors: Path, facts: dict[str, Any]) -> str:
    """Of every byte that counts: the tensors and the facts."""
    with tensors.open("rb") as file:
        result = hashlib.file_digest(file, "sha256")
    result.update(json.dumps(facts, sort_keys=True).encode())
    return result.hexdigest()


def newest_checkpoint(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest undamaged checkpoint, if any; and what is wrong with newer ones."""
    damaged: list[str] = []
    for place in newest_first(folder):
        try:
            return load_checkpoint(place), damaged
        except DamagedCheckpoint as error:
            damaged.append(f"{place.name} is damaged ({error}): going back to the one before")
    return None, damaged


def newest_first(folder: Path) -> Iterator[Path]:
    yield from reversed(complete_checkpoints(folder))


def complete_checkpoints(folder: Path) -> list[Path]:
    """Checkpoints that were renamed into place, oldest first; not copies with other names."""
    return sorted(path for path in folder.glob("step-*") if NAME.fullmatch(path.name))


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
