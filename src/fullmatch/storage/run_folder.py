"""Where a run lives on disk: made once, locked while in use, never touched by another run."""

import fcntl
import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from fullmatch.errors import UserError
from fullmatch.storage.atomic import aside


class RunFolder:
    """The files of one run."""

    def __init__(self, path: Path, *, new: bool = False, numbered: bool = False) -> None:
        self.path, self.new, self.numbered = path, new, numbered
        # A labels-only run is resumed through the run it belongs to.
        main = path.parent if path.name == "labels-only" else path
        self.resume_command = f"fullmatch resume {shlex.quote(str(main))}"
        self.config = path / "config.toml"
        self.metrics = path / "metrics.jsonl"
        self.split = path / "split.json"
        self.checkpoints = path / "checkpoints"
        self.model = path / "model.safetensors"
        self.predictions = path / "predictions.safetensors"  # of the teacher, on the test images
        self.learned = path / "learned.safetensors"  # digests of the pictures it learned from
        self.result = path / "result.json"

    @classmethod
    def planned(cls, name: str, out: Path | None = None) -> "RunFolder":
        """The folder of a new run, not made yet: `out`, or the next free number under runs/."""
        if out is None:
            return cls(Path("runs") / f"{name}-001", new=True, numbered=True)
        if out.exists():
            raise taken(out)
        return cls(out, new=True)

    def make(self) -> "RunFolder":
        """The folder on disk; a numbered one takes the first number that is free by now."""
        path = self.path
        while True:
            try:
                path.mkdir(parents=True, exist_ok=not self.new)
                return RunFolder(path)
            except FileExistsError:
                if not self.numbered:
                    raise taken(path) from None
                name, _, number = path.name.rpartition("-")
                path = path.with_name(f"{name}-{int(number) + 1:03d}")
            except OSError as error:
                raise UserError(
                    f"cannot make the run folder {path}: {error.strerror}; name another with --out"
                ) from None

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

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A full or vanished disk ends in one line that says how to go on."""
        try:
            yield
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(
                f"cannot write to {self.path}: {reason}; mend that, then go on with: "
                f"{self.resume_command}"
            ) from None

    def read_result(self) -> dict[str, Any]:
        """What a finished run says of itself."""
        if not self.result.exists():
            raise UserError(f"{self.path} is not finished; go on with: {self.resume_command}")
        try:
            found = json.loads(self.result.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict):
            raise UserError(
                f"{self.result} is damaged; delete it, then write it anew with: "
                f"{self.resume_command}"
            )
        return found

    def write_result(self, found: dict[str, Any]) -> None:
        self.write(self.result, json.dumps(found, indent=1) + "\n")

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
        with aside(path) as place:
            place.write_text(text, encoding="utf-8")


def taken(path: Path) -> UserError:
    folder = RunFolder(path)
    kind = ", and is a file" if path.is_file() else ", and a run never overwrites anything"
    # Only a run can go on.
    other = f", or continue with: {folder.resume_command}" if folder.config.is_file() else ""
    return UserError(f"{path} exists already{kind}; name a new folder with --out{other}")
