"""Which code and which settings made a result, so that a change of either shows."""

import ast
import csv
import functools
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
from fullmatch.data.sources.archives import unpack
from fullmatch.errors import UserError
from fullmatch.experiment.settings import display_name, resolve
from fullmatch.storage.run_folder import RunFolder

SOURCE = Path(fullmatch.__file__).parent
SIGNATURE = ".code"  # a file of a run folder: the hash of the code that began it
# What decides a run's numbers; the rest only asks for runs and shows them.
DECISIVE = (
    *("algorithms", "augment", "config", "core.py", "data", "distributed", "evaluation"),
    *("experiment", "losses", "models", "storage", "training"),
)
# Of these packages, what only chooses settings: those are part of a run's identity themselves.
CHOOSING = ("bench.py", "candidates.py", "planning.py", "presets.py", "settings.py")
EQUIVALENT = "equivalent_code.csv"  # hashes of code that was shown to give the same numbers
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
    """A hash of the code that decides a run's numbers.

    It covers what every definition does, not where it is: moving code to another file, comments,
    docstrings, imports and formatting leave it unchanged.
    """
    definitions: list[str] = []
    for name in DECISIVE:
        place = source / name
        for path in place.rglob("*.py") if place.is_dir() else [place]:
            if path.exists() and path.name not in CHOOSING:  # an older commit may not have it
                definitions += definition_hashes(path.read_text(encoding="utf-8"))
    return hashlib.sha256("".join(sorted(definitions)).encode()).hexdigest()[:16]


def definition_hashes(text: str) -> list[str]:
    """One hash per top-level statement that is not an import or a docstring."""
    statements = (node for node in ast.parse(text).body if not skipped(node))
    return [hashlib.sha256(structure(node).encode()).hexdigest() for node in statements]


def structure(node: object) -> str:
    """A syntax tree as text that is equal in every version of Python; without docstrings."""
    if isinstance(node, list):
        return "[" + ",".join(structure(each) for each in node if not skipped(each)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((k, v) for k, v in ast.iter_fields(node) if v not in (None, []) and k != "kind")
    return f"{type(node).__name__}({','.join(f'{k}={structure(v)}' for k, v in fields)})"


def skipped(node: object) -> bool:
    """An import, or a text that stands alone: a docstring."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return text or isinstance(node, ast.Import | ast.ImportFrom)


@functools.cache
def equivalent_code(source: Path = SOURCE) -> dict[str, str]:
    """Hashes of earlier code, each with the later one that was shown to give the same numbers."""
    text = (source / "reproduce" / EQUIVALENT).read_text(encoding="utf-8")
    return {row["before"]: row["after"] for row in csv.DictReader(text.splitlines())}


def same_code(one: str | None, other: str | None) -> bool:
    """Whether two hashes are of code that gives the same numbers."""
    return latest_equivalent(one) == latest_equivalent(other)


def latest_equivalent(code: str | None) -> str | None:
    known = equivalent_code()
    while code in known:
        code = known[code]
    return code


CODE = code_hash()  # taken at once: the files may change while this process runs


def sign(folder: Path) -> None:
    """Keep with a run which code has begun it."""
    run = RunFolder(folder)
    with run.writing():
        run.write(folder / SIGNATURE, CODE)


def made_here(folder: Path) -> bool:
    """Whether the code at hand is the one that began a run."""
    place = folder / SIGNATURE
    if not place.is_file():
        return False
    return same_code(place.read_text(encoding="utf-8", errors="replace"), CODE)


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
