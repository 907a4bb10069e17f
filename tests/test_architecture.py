"""Who may import whom, what is exported, and what stays quick."""

import ast
import functools
import graphlib
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import fullmatch

SOURCE = Path(fullmatch.__file__).parent
GROUND = {"core", "distributed", "errors", "limits"}
# Siblings that are not named here never import each other. Whatever is not a key is a front door.
MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "distributed": set(),
    "errors": set(),
    "limits": {"errors"},
    "losses": set(),
    "augment": GROUND,
    "models": GROUND,
    "data": GROUND,
    "algorithms": GROUND | {"losses", "augment"},
    "tensors": {"writing"},
    "training": GROUND | {"augment", "data", "models", "tensors"},
    "config": {"errors", "limits"},
    "writing": {"errors"},
    "report": {"errors", "writing"},
}


def unit(path: Path) -> str:
    """The package or module right under `fullmatch` that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Full names of the modules a file imports, at its top or later."""
    found: set[str] = set()
    package = ["fullmatch", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module] if node.module else base)
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


@functools.cache
def graph() -> dict[str, set[str]]:
    units = {unit(path) for path in SOURCE.rglob("*.py")} - {"__init__"}
    edges: dict[str, set[str]] = {name: set() for name in units}
    for path in SOURCE.rglob("*.py"):
        parts = [name.split(".") for name in imports(path)]
        own = {p[1] for p in parts if p[0] == "fullmatch" and len(p) > 1} & units
        if unit(path) in units:
            edges[unit(path)] |= own - {unit(path)}
    return edges


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_imports_go_downwards_only(name: str) -> None:
    assert graph().get(name, set()) <= MAY_IMPORT[name]


def test_trainer_and_algorithms_do_not_know_each_other() -> None:
    found = graph()
    assert "algorithms" not in found["training"] and "training" not in found["algorithms"]


def test_of_augment_algorithms_know_only_the_mixing() -> None:
    for path in (SOURCE / "algorithms").glob("*.py"):
        used = {name for name in imports(path) if name.startswith("fullmatch.augment")}
        assert all(name.startswith("fullmatch.augment.mix") for name in used), path.name


def test_no_circles() -> None:
    graphlib.TopologicalSorter(graph()).prepare()


def test_report_needs_no_torch() -> None:
    for path in (SOURCE / "report").rglob("*.py"):
        assert not any(name.split(".")[0] in ("torch", "torchvision") for name in imports(path))


def isort_key(name: str) -> tuple[int, str]:
    """CONSTANTS, then Classes, then functions."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("__init__.py")), ids=unit)
def test_exports_are_sorted_and_there(path: Path) -> None:
    module = importlib.import_module(
        ".".join(("fullmatch", *path.relative_to(SOURCE).parent.parts))
    )
    exported = getattr(module, "__all__", [])
    assert list(exported) == sorted(exported, key=isort_key)
    assert all(hasattr(module, name) for name in exported)


def test_every_module_opens_with_a_sentence() -> None:
    for path in SOURCE.rglob("*.py"):
        first = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
        assert first and first[0].endswith("."), path.name


def test_names_that_say_nothing_are_not_used() -> None:
    assert not {"utils", "util", "helper", "helpers", "misc", "base", "common"} & {
        path.stem for path in SOURCE.rglob("*.py")
    }


@pytest.mark.parametrize("module", ["estimator", "classifier", "losses"])
def test_the_compiler_is_imported_by_whom_it_serves(module: str) -> None:
    """It takes seconds, and sets variables of the environment."""
    code = (
        f"import os, sys\nbefore = dict(os.environ)\nimport fullmatch.{module}\n"
        "assert 'torch._dynamo' not in sys.modules and dict(os.environ) == before"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "what",
    [
        "import fullmatch",
        "import fullmatch.config",
        "import fullmatch.errors",
        "from fullmatch.data import DATASETS",
        "from fullmatch.cli import main; main(['--help'])",
        "from fullmatch.cli import main; main(['train', '--help'])",
        "from fullmatch.cli import main; main(['--version'])",
        "from fullmatch.cli import main; main(['list', 'datasets'])",
    ],
)
def test_quick_without_torch(what: str) -> None:
    code = f"import sys\n{what}\nassert not {{'torch', 'sklearn', 'numpy'}} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
