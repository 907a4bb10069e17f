"""Which code and which settings made a result, so that a change of either shows."""

import hashlib
import shlex
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import fullmatch
from fullmatch.algorithms import algorithm as spec_of
from fullmatch.algorithms import name_of
from fullmatch.config import ExperimentConfig, config_table, experiment_config, fingerprint
from fullmatch.data.archives import unpack
from fullmatch.errors import UserError
from fullmatch.runfolder import RunFolder
from fullmatch.settings import display_name, resolve

SOURCE = Path(fullmatch.__file__).parent
SIGNATURE = ".code"  # a file of a run folder: the hash of the code that began it
# What decides a run's numbers; the rest only asks for runs and shows them.
DECISIVE = (
    *("algorithms", "assembly.py", "augment", "classifier.py", "core.py", "data", "distributed.py"),
    *("experiment.py", "given.py", "losses", "models", "results.py", "training", "warm_start.py"),
)
# Settings that change where or how a run is done, never what it is.
INDIFFERENT = {
    "data": ("root",),
    "training": ("checkpoint_every", "execution", "log_every", "threads"),
}


def identity(table: Mapping[str, Any]) -> str:
    """A hash of the settings that count."""
    return fingerprint(decisive(table))


def decisive(table: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that count, read by today's code: a new setting has its default."""
    config = table_of(experiment_config(table, spec_of))
    config.pop("baseline", None)
    for section, unimportant in INDIFFERENT.items():
        config[section] = {k: v for k, v in config[section].items() if k not in unimportant}
    return config


def table_of(config: ExperimentConfig) -> dict[str, Any]:
    return config_table(config, name_of)


def code_hash(source: Path = SOURCE) -> str:
    """A hash of the code that decides a run's numbers."""
    found = hashlib.sha256()
    for name in DECISIVE:
        place = source / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if not path.exists():
                continue  # an older commit may lack it
            found.update(path.relative_to(source).as_posix().encode())
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


CODE = code_hash()  # taken at once: the files may change while this process runs


def sign(folder: Path) -> None:
    """Keep with a run which code has begun it."""
    run = RunFolder(folder)
    with run.writing():
        run.write(folder / SIGNATURE, CODE)


def made_here(folder: Path) -> bool:
    """Whether the code at hand is the one that began a run."""
    place = folder / SIGNATURE
    return place.is_file() and place.read_text(encoding="utf-8", errors="replace") == CODE


def code_hash_of(commit: str) -> str:
    """The same of an older commit of this checkout."""
    archive = git("archive", "--format=tar", commit, "src/fullmatch")
    if archive is None:
        raise UserError(f"no commit {commit!r} here; run this in a checkout that has it")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            unpack(tar, Path(folder))
        return code_hash(Path(folder) / "src" / "fullmatch")


def full_hash(commit: str) -> str:
    """A commit by its whole hash: a name such as HEAD is another one tomorrow."""
    found = git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    return commit if found is None else found.decode().strip()


def checkout() -> dict[str, Any]:
    """Commit of the code at hand, and whether it was changed since; None outside a checkout."""
    commit = git("rev-parse", "HEAD")
    if commit is None or git("ls-files", "--error-unmatch", "src/fullmatch/core.py") is None:
        return {"commit": None, "dirty": None}
    changed = git("status", "--porcelain", "--", "src/fullmatch")
    return {"commit": commit.decode().strip(), "dirty": bool(changed)}


def git(*arguments: str) -> bytes | None:
    """What git says of this package's checkout; None where there is none."""
    try:
        done = subprocess.run(
            ["git", "-C", str(SOURCE.parent.parent), *arguments], capture_output=True, check=False
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def command(table: Mapping[str, Any]) -> str:
    """The command that asks for these settings, wherever the data lies."""
    config = experiment_config(table, spec_of)
    flags: dict[str, Any] = {
        "data": config.data.name,
        "labels": config.data.labels,
        "algorithm": display_name(config.algorithm),
        "steps": config.training.steps,
        "seed": config.seed,
    }
    usual = flat(table_of(resolve(**flags)))
    asked = flat(table_of(config))
    words = ["fullmatch train", shlex.quote(str(flags.pop("data")))]
    words += [f"--{name} {value}" for name, value in flags.items() if value is not None]
    for name in sorted(usual.keys() | asked.keys()):
        value = asked.get(name, "none")
        if name != "data.root" and value != usual.get(name, "none"):
            words.append(f"--set {shlex.quote(f'{name}={written(value)}')}")
    return " ".join(words)


def flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A table of tables as one of dotted names."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
