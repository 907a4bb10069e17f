"""Where a run lives on disk: made once, locked while in use, never touched by another run."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fullmatch.errors import UserError


class RunFolder:
    """The files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # A labels-only run is resumed through the run it belongs to.
        self.resume_path = path.parent if path.name == "labels-only" else path
        self.config = path / "config.toml"
        self.metrics = path / "metrics.jsonl"
        self.split = path / "split.json"
        self.checkpoints = path / "checkpoints"
        self.model = path / "model.safetensors"
        self.predictions = path / "predictions.safetensors"  # of the teacher, on the test images
        self.result = path / "result.json"

    @classmethod
    def create(cls, path: Path) -> "RunFolder":
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise UserError(
                f"{path} exists already, and a run never overwrites another; name a new folder "
                f"with --out, or continue with: fullmatch resume {path}"
            ) from None
        except OSError as error:
            raise UserError(
                f"cannot make the run folder {path}: {error.strerror}; name another with --out"
            ) from None
        return cls(path)

    @classmethod
    def numbered(cls, name: str, parent: Path = Path("runs")) -> "RunFolder":
        """runs/name-001, or the next number that is free."""
        number = 1
        while True:
            path = parent / f"{name}-{number:03d}"
            if not path.exists():
                try:
                    return cls.create(path)
                except UserError:
                    if not path.exists():  # not a race for the number: the parent cannot be used
                        raise
            number += 1

    @classmethod
    def existing(cls, path: Path) -> "RunFolder":
        if not (path / "config.toml").is_file():
            raise UserError(
                f"{path} is no run folder (it has no config.toml); see the folders under runs/"
            )
        return cls(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time; the lock dies with its process."""
        try:
            handle = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"cannot write to {self.path}: {error.strerror}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another process is training in {self.path}; wait for it") from None
        try:
            yield
        finally:
            os.close(handle)

    def append(self, record: dict[str, Any]) -> None:
        with self.metrics.open("a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")

    def cut_metrics(self, size: int) -> None:
        """Forget what was logged after a checkpoint."""
        if self.metrics.exists():
            os.truncate(self.metrics, min(size, self.metrics.stat().st_size))

    def metrics_size(self) -> int:
        return self.metrics.stat().st_size if self.metrics.exists() else 0

    def records(self) -> list[dict[str, Any]]:
        if not self.metrics.exists():
            return []
        lines = self.metrics.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line]

    def write(self, path: Path, text: str) -> None:
        """Replace a file at once, so that a reader never sees half of it."""
        aside = path.with_name(f".{path.name}.{os.getpid()}")
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
