"""Which code and which settings made a result, so that a change of either is noticed."""

import ast
import csv
import functools
import hashlib
import shlex
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import fullmatch
from fullmatch.algorithms import algorithm as spec_of
from fullmatch.algorithms import name_of
from fullmatch.config import (
    ExperimentConfig,
    SettingsTable,
    config_table,
    experiment_config,
    fingerprint,
    identifying_table,
)
from fullmatch.data.sources.archives import unpack_archive
from fullmatch.errors import UserError
from fullmatch.experiment.settings import display_name, resolve
from fullmatch.storage.run_folder import RunFolder

SOURCE = Path(fullmatch.__file__).parent
SIGNATURE = ".code"  # file in a run folder: the hash of the code that started the run
# Code that decides a run's numbers; everything else only starts runs or shows them.
DECISIVE = (
    *("algorithms", "augment", "config", "core.py", "data", "distributed", "evaluation"),
    *("experiment", "files", "losses", "models", "plugins", "storage", "training"),
)
# Files of these packages that only choose settings, which are part of a run's identity anyway.
SETTINGS_ONLY = (
    "bench.py",
    "candidates.py",
    "planning.py",
    "presets.py",
    "published_settings.py",
    "settings.py",
    "source_scan.py",
)
EQUIVALENT = "equivalent_code.csv"  # pairs of code hashes that were shown to give equal numbers
# Settings that change where or how a run is executed, never its result.
IRRELEVANT = {
    "data": ("root",),
    "training": ("checkpoint_every", "execution", "log_every", "threads"),
}


@dataclass(frozen=True)
class CodeVersion:
    """Which code made a run; None for what is unknown."""

    commit: str | None = None
    dirty: bool | None = None  # whether there were changes on top of the commit
    hash: str | None = None


UNKNOWN_CODE = CodeVersion()


def identity(table: Mapping[str, Any]) -> str:
    """A hash of the settings that decide a run's result."""
    config = experiment_config(table, spec_of)
    return fingerprint(without_irrelevant(identifying_table(config, name_of)))


def relevant_settings(table: Mapping[str, Any]) -> SettingsTable:
    """The settings that decide a run's result; those not in the table have their defaults."""
    return without_irrelevant(table_of(experiment_config(table, spec_of)))


def without_irrelevant(table: SettingsTable) -> SettingsTable:
    table = {name: part for name, part in table.items() if name != "baseline"}
    for section, irrelevant in IRRELEVANT.items():
        table[section] = {k: v for k, v in table[section].items() if k not in irrelevant}
    return table


def table_of(config: ExperimentConfig) -> dict[str, Any]:
    return config_table(config, name_of)


def code_hash(source: Path = SOURCE) -> str:
    """A hash of the code that decides a run's numbers.

    It covers what every definition does, not where it is: moving code to another file or changing
    comments, docstrings, imports or formatting leaves it unchanged.
    """
    definitions: list[str] = []
    for name in DECISIVE:
        unit = source / name
        for path in unit.rglob("*.py") if unit.is_dir() else [unit]:
            if path.exists() and path.name not in SETTINGS_ONLY:  # older commits lack some
                definitions += definition_hashes(path.read_text(encoding="utf-8"))
    return hashlib.sha256("".join(sorted(definitions)).encode()).hexdigest()[:16]


def definition_hashes(text: str) -> list[str]:
    """One hash per top-level statement that is not an import or a docstring."""
    statements = (node for node in ast.parse(text).body if not is_import_or_docstring(node))
    return [hashlib.sha256(structure(node).encode()).hexdigest() for node in statements]


def structure(node: object) -> str:
    """A syntax tree as text, without docstrings, that is equal in every version of Python."""
    if isinstance(node, list):
        parts = [structure(each) for each in node if not is_import_or_docstring(each)]
        return "[" + ",".join(parts) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((k, v) for k, v in ast.iter_fields(node) if v not in (None, []) and k != "kind")
    return f"{type(node).__name__}({','.join(f'{k}={structure(v)}' for k, v in fields)})"


def is_import_or_docstring(node: object) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or isinstance(node, ast.Import | ast.ImportFrom)


@functools.cache
def equivalent_code(source: Path = SOURCE) -> dict[str, str]:
    """Hashes of earlier code, each with a later one that was shown to give the same numbers."""
    text = (source / "reproduce" / EQUIVALENT).read_text(encoding="utf-8")
    return {row["before"]: row["after"] for row in csv.DictReader(text.splitlines())}


def same_code(one: str | None, other: str | None) -> bool:
    """Whether the code of two hashes gives the same numbers."""
    return latest_equivalent(one) == latest_equivalent(other)


def latest_equivalent(code: str | None) -> str | None:
    later = equivalent_code()
    while code in later:
        code = later[code]
    return code


CODE = code_hash()  # computed on import, since the files may change while this process runs


def write_signature(folder: Path) -> None:
    """Store in a run folder which code started the run."""
    run = RunFolder(folder)
    with run.writing():
        run.write_text(folder / SIGNATURE, CODE)


def made_by_current_code(folder: Path) -> bool:
    """Whether a run was started by this code."""
    signature = folder / SIGNATURE
    if not signature.is_file():
        return False
    return same_code(signature.read_text(encoding="utf-8", errors="replace"), CODE)


def code_hash_of(commit: str) -> str:
    """The code hash of an older commit of this checkout."""
    archive = run_git("archive", "--format=tar", commit, "src/fullmatch")
    if archive is None:
        raise UserError(f"there is no commit {commit!r} here; run this in a checkout that has it")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            unpack_archive(tar, Path(folder))
        return code_hash(Path(folder) / "src" / "fullmatch")


def current_code() -> CodeVersion:
    """This code, with its commit if it is in a checkout."""
    commit = run_git("rev-parse", "HEAD")
    if commit is None or run_git("ls-files", "--error-unmatch", "src/fullmatch/core.py") is None:
        return CodeVersion(hash=CODE)
    changes = run_git("status", "--porcelain", "--", "src/fullmatch")
    return CodeVersion(commit.decode().strip(), bool(changes), CODE)


def committed_code(commit: str, *, dirty: bool = False) -> CodeVersion:
    """The code of a commit; its hash is unknown if there were uncommitted changes."""
    return CodeVersion(resolve_commit(commit), dirty, None if dirty else code_hash_of(commit))


def resolve_commit(commit: str) -> str:
    """The full hash of a commit, since a name such as HEAD means another commit tomorrow."""
    resolved = run_git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    return commit if resolved is None else resolved.decode().strip()


def run_git(*arguments: str) -> bytes | None:
    """The output of git in this package's checkout; None if git fails or is missing."""
    try:
        done = subprocess.run(
            ["git", "-C", str(SOURCE.parent.parent), *arguments], capture_output=True, check=False
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def command(table: Mapping[str, Any]) -> str:
    """The command that trains with these settings, wherever the data is."""
    config = experiment_config(table, spec_of)
    flags: dict[str, Any] = {
        "data": config.data.name,
        "labels": config.data.labels,
        "algorithm": display_name(config.algorithm),
        "steps": config.training.steps,
        "seed": config.seed,
    }
    defaults = flatten(table_of(resolve(**flags)))
    settings = flatten(table_of(config))
    words = ["fullmatch train", shlex.quote(str(flags.pop("data")))]
    words += [f"--{name} {value}" for name, value in flags.items() if value is not None]
    for name in sorted(defaults.keys() | settings.keys()):
        value = settings.get(name, "none")
        if name != "data.root" and value != defaults.get(name, "none"):
            words.append(f"--set {shlex.quote(f'{name}={format_setting(value)}')}")
    return " ".join(words)


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one table with dotted names."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def format_setting(value: Any) -> str:
    """A value as `--set` takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
