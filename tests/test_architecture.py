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
# Layers, bottom to top: a package imports packages of lower layers only, never a neighbor.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors"}),
    frozenset({"files", "plugins"}),
    frozenset({"core", "config", "distributed"}),
    frozenset({"storage"}),
    frozenset({"losses", "augment", "models", "data", "pages"}),
    frozenset({"evaluation"}),
    frozenset({"algorithms", "training"}),
    frozenset({"experiment"}),
    frozenset({"inference"}),
    frozenset({"display", "estimator", "hub", "labeling", "reports", "reproduce", "tracking"}),
    frozenset({"sweeps"}),
    frozenset({"api"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)
MODULES = {"core", "errors", "__main__"}  # the only files beside packages
WITHOUT_TORCH = ("cli", "config", "errors", "files", "plugins", "pages", "reports")
# Functions with more than seven parameters: front doors, which take one per setting.
MANY_PARAMETERS = {
    "api/sweeping.py: sweep",
    "api/training.py: start",
    "cli/commands/bench.py: bench",
    "cli/commands/sweep.py: sweep",
    "cli/commands/train.py: train",
    "data/sampler.py: Sampler.__init__",  # what an order is a function of, and who reads which part
    "data/sources/arrays.py: from_arrays",
    "estimator/classifier.py: FullMatchClassifier.__init__",
    "experiment/settings.py: resolve",
    "models/wide_resnet.py: WideResNet.__init__",  # the settings of an architecture
    "training/step.py: TrainingStep.__init__",  # everything that one step is made of
}


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def unit(path: Path) -> str:
    """The package or module right under `fullmatch` that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path, *, top: bool = False) -> set[str]:
    """Full names of the modules a file imports, at its top or later; `top`: at its top alone."""
    found: set[str] = set()
    package = ["fullmatch", *path.relative_to(SOURCE).parent.parts]
    tree = parse(path)
    for node in tree.body if top else ast.walk(tree):
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


def test_every_package_has_its_layer() -> None:
    placed = [name for layer in LAYERS for name in layer]
    assert sorted(placed) == sorted(graph())
    assert {path.stem for path in SOURCE.glob("*.py")} - {"__init__"} == MODULES


@pytest.mark.parametrize("level", range(len(LAYERS)))
def test_imports_go_downwards_only(level: int) -> None:
    below = set().union(*LAYERS[:level])
    for name in LAYERS[level]:
        assert graph()[name] <= below, f"{name} imports {sorted(graph()[name] - below)}"


def test_losses_import_nothing_of_ours() -> None:
    assert graph()["losses"] == set()


def test_the_figure_in_the_docs_is_the_import_graph() -> None:
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    figure = text.split("<!-- imports -->")[1].split("```")[1].strip().splitlines()
    found = graph()
    rows = [
        f"{name:<11} {' '.join(sorted(found[name]))}".rstrip()
        for layer in reversed(LAYERS)
        for name in sorted(layer)
    ]
    assert figure == rows, "replace the figure in docs/architecture.md by:\n" + "\n".join(rows)


def test_of_augment_algorithms_know_only_the_mixing() -> None:
    for path in (SOURCE / "algorithms").glob("*.py"):
        used = {name for name in imports(path) if name.startswith("fullmatch.augment")}
        assert all(name.startswith("fullmatch.augment.mix") for name in used), path.name


def module_graph() -> dict[str, set[str]]:
    """Imports at the top of modules; those inside functions happen later, and cannot lock up."""
    names = {
        ".".join(("fullmatch", *path.relative_to(SOURCE).with_suffix("").parts)): path
        for path in SOURCE.rglob("*.py")
    }
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    return {
        name: {target for target in imports(path, top=True) if target in names} - {name}
        for name, path in names.items()
    }


def test_no_circles() -> None:
    graphlib.TopologicalSorter(graph()).prepare()
    graphlib.TopologicalSorter(module_graph()).prepare()


@pytest.mark.parametrize("package", WITHOUT_TORCH)
def test_modules_that_need_no_torch_import_none(package: str) -> None:
    place = SOURCE / package
    for path in place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]:
        used = {name.split(".")[0] for name in imports(path, top=True)}
        assert not used & {"torch", "torchvision"}, path


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


def test_no_two_public_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path.name)
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_functions_fit_on_a_screen() -> None:
    """At most 40 lines after the docstring; a kernel is read differently."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.FunctionDef) and not path.stem.endswith("_triton"):
                body = node.body[1:] if ast.get_docstring(node) and node.body[1:] else node.body
                lines = (node.end_lineno or 0) - body[0].lineno + 1
                assert lines <= 40, f"{path.name}: {node.name} has {lines} lines"


def list_long_signatures(path: Path, most: int = 7) -> set[str]:
    """Functions of a file with more parameters, as `file.py: name`; a method by its class."""
    tree = parse(path)
    named = [(node.name, node) for node in tree.body if isinstance(node, ast.FunctionDef)]
    for owner in ast.walk(tree):
        if isinstance(owner, ast.ClassDef):
            methods = (node for node in owner.body if isinstance(node, ast.FunctionDef))
            named += [(f"{owner.name}.{node.name}", node) for node in methods]
    return {
        f"{path.relative_to(SOURCE).as_posix()}: {name}"
        for name, node in named
        if len({arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)} - {"self", "cls"})
        > most
    }


def test_functions_have_few_parameters() -> None:
    """At most seven, but for front doors and kernels."""
    paths = [path for path in SOURCE.rglob("*.py") if not path.stem.endswith("_triton")]
    assert set().union(*map(list_long_signatures, paths)) <= MANY_PARAMETERS


def replaced_constants(text: str) -> list[str]:
    """Constants of other modules that code replaces: by `setattr`, `mock.patch` or assignment."""
    names: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            values = [arg.value for arg in node.args[:2] if isinstance(arg, ast.Constant)]
            if called in ("setattr", "patch", "object"):
                names += [value.rpartition(".")[2] for value in values if isinstance(value, str)]
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.append(node.attr)
    return [name for name in names if name.isupper()]


@pytest.mark.parametrize(
    "code",
    [
        'monkeypatch.setattr(module, "SIZE", 3)',
        'monkeypatch.setattr(\n    "fullmatch.data.feed.SIZE",\n    3,\n)',
        'setattr(module, "SIZE", 3)',
        'mock.patch("fullmatch.data.feed.SIZE", 3)',
        'mock.patch.object(module, "SIZE", 3)',
        "module.SIZE = 3",
        "module.SIZE += 3",
    ],
)
def test_replaced_constants_are_found(code: str) -> None:
    assert replaced_constants(code) == ["SIZE"]
    assert replaced_constants(code.replace("SIZE", "size")) == []


def test_tests_replace_no_constants() -> None:
    """A value that a test needs to choose is a parameter, with the constant as its default."""
    for path in Path(__file__).parent.rglob("*.py"):
        names = replaced_constants(path.read_text(encoding="utf-8"))
        assert names == [], f"{path.name} replaces {', '.join(names)}; make it a parameter"


def test_every_module_opens_with_a_sentence() -> None:
    for path in SOURCE.rglob("*.py"):
        first = (ast.get_docstring(parse(path)) or "").splitlines()
        assert first, path.name
        assert first[0].endswith("."), path.name


def test_names_that_say_nothing_are_not_used() -> None:
    assert not {"utils", "util", "helper", "helpers", "misc", "base", "common"} & {
        path.stem for path in SOURCE.rglob("*.py")
    }


def test_the_compiler_is_imported_by_whom_it_serves() -> None:
    """It takes seconds, and sets variables of the environment."""
    code = (
        # scikit-learn sets variables of its own.
        "import os, sys, sklearn\nbefore = dict(os.environ)\n"
        "import fullmatch.losses, fullmatch.experiment.classifier, fullmatch.estimator\n"
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
