"""Checkpoints that are whole or not there: written aside, synced, then renamed into place."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from fullmatch.storage.tensors import write_tensors

KEPT = 2
FORMAT = 1  # raised when what a checkpoint holds changes
TENSORS, FACTS = "state.safetensors", "state.json"


class Damaged(Exception):
    """A checkpoint that cannot be used, and why."""


def save(folder: Path, step: int, state: dict[str, Tensor], facts: dict[str, Any]) -> Path:
    """Write a checkpoint; facts are anything JSON can hold. Only the newest two are kept."""
    folder.mkdir(exist_ok=True)
    place = folder / f"step-{step:09d}"
    if place.exists():
        try:
            load(place)
            return place  # a state is a function of its step: this is it already
        except Damaged:
            shutil.rmtree(place)
    aside = folder / f".step-{step:09d}.{os.getpid()}"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        write_tensors(aside / TENSORS, state)
        facts = {"format": FORMAT, "step": step, **facts}
        text = json.dumps(facts | {"sha256": digest(aside / TENSORS, facts)}, indent=1)
        (aside / FACTS).write_text(text + "\n", encoding="utf-8")
        for written in (aside / TENSORS, aside / FACTS, aside):
            sync(written)
        aside.rename(place)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)  # a full disk needs the room
        raise
    sync(folder)
    for old in [*folder.glob(".step-*"), *whole(folder)[:-KEPT]]:
        shutil.rmtree(old)
    return place


def load(place: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of one checkpoint; `Damaged` if a single byte is not as written."""
    try:
        facts = json.loads((place / FACTS).read_text(encoding="utf-8"))
        if facts.pop("sha256") != digest(place / TENSORS, facts):
            raise Damaged("its contents have changed")
        if facts["format"] != FORMAT:
            raise Damaged("another version of fullmatch saved it")
        return load_file(place / TENSORS), facts
    except OSError as error:
        raise Damaged(f"{Path(str(error.filename)).name}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise Damaged(f"unreadable: {type(error).__name__}") from None


def digest(tensors: Path, facts: dict[str, Any]) -> str:
    """Of every byte that counts: the tensors and what is said of them."""
    found = hashlib.sha256(tensors.read_bytes())
    found.update(json.dumps(facts, sort_keys=True).encode())
    return found.hexdigest()


def newest(folder: Path) -> tuple[tuple[dict[str, Tensor], dict[str, Any]] | None, list[str]]:
    """The newest whole checkpoint, None if there is none; and what is wrong with newer ones."""
    damaged: list[str] = []
    for place in newest_first(folder):
        try:
            return load(place), damaged
        except Damaged as error:
            damaged.append(f"{place.name} is damaged ({error}): going back to the one before")
    return None, damaged


def newest_first(folder: Path) -> Iterator[Path]:
    yield from reversed(whole(folder))


def whole(folder: Path) -> list[Path]:
    """Checkpoints that were renamed into place, oldest first."""
    return sorted(folder.glob("step-*"))


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
