"""The page docs/licenses.md: the license of every package that fullmatch names as a dependency.

    python -m benchmarks.licenses

It reads what the installed packages say about themselves.
"""

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licenses.md"
INTRODUCTION = """# Licenses of dependencies

What each package says about its license. `python -m benchmarks.licenses` writes this page from the
installed packages; the versions are not part of it, since licenses rarely change.

| package | needed for | license |
| --- | --- | --- |
"""
LONGEST = 300  # characters of a license field that is a name and not a whole text
NOT_INSTALLED = "not installed where this page was written"
TOOLS = ("dev", "docs")  # extras that no user needs


def list_dependencies() -> dict[str, str]:
    """The extra that needs each package; 'always' for those that every user gets."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {name_of(line): "always" for line in project["dependencies"]}
    for extra, lines in project["optional-dependencies"].items():
        if extra not in TOOLS:
            needed = {name_of(line): f"`fullmatch[{extra}]`" for line in lines} | needed
    return needed


def name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def read_license(package: str) -> str:
    """What a package says: an SPDX expression, a short field, or its classifiers."""
    try:
        facts = metadata(package)
    except PackageNotFoundError:
        return NOT_INSTALLED
    field = first(facts, "License-Expression") or first(facts, "License")
    if field not in ("", "UNKNOWN") and len(field) <= LONGEST and "\n" not in field:
        return field
    classifiers = [each for each in facts.get_all("Classifier") or [] if "License ::" in each]
    names = [each.rpartition(" :: ")[2] for each in classifiers]
    return ", ".join(names) or "not stated by the package"


def first(facts: PackageMetadata, key: str) -> str:
    return next(iter(facts.get_all(key) or []), "")


def render_page(dependencies: Iterable[tuple[str, str]]) -> str:
    rows = [f"| {name} | {need} | {read_license(name)} |" for name, need in dependencies]
    return INTRODUCTION + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render_page(sorted(list_dependencies().items())), encoding="utf-8")
