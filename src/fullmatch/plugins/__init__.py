"""The user's own methods, networks, views, data sets and optimizers, by `module:name`.

Importing a module runs its code. Only names that the user's command or config has are imported; a
model's file may name a module, too, but that alone does not import it (`refuse_unnamed`).
"""

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from fullmatch.errors import UserError, did_you_mean

# Data on the hub (hf:NAME) and networks of timm (timm:NAME) have the same form.
_REFERENCE = re.compile(r"(?!hf:|timm:)[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def is_reference(name: str) -> bool:
    """Whether a name has the form `module:name`."""
    return _REFERENCE.fullmatch(name) is not None


def load_object(reference: str, what: str) -> Any:
    """What `module:name` stands for; modules in the current folder are found, too."""
    module_name, _, name = reference.partition(":")
    try:
        module = import_from_here(module_name)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(
            f"cannot import {module_name!r} for the {what} {reference!r} ({reason}); run this in "
            "the folder that has it, or install it"
        ) from error
    if not hasattr(module, name):
        hint = did_you_mean(name, [each for each in vars(module) if not each.startswith("_")])
        raise UserError(f"the module {module_name!r} has no {what} {name!r}{hint or '; add it'}")
    return getattr(module, name)


def check_call(function: Any, message: str, **arguments: Any) -> None:
    """`UserError` for what cannot be called like this; what it raises itself stays as it is."""
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        raise UserError(f"{message} ({error})") from None


def import_from_here(module: str) -> Any:
    """Import a module from the usual places, and last from the current folder."""
    if module in sys.modules:
        return sys.modules[module]
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.append(here)
    try:
        return importlib.import_module(module)
    finally:
        if added:
            sys.path.remove(here)


def reference_to(definition: type) -> str | None:
    """`module:name` of a class; None if it cannot be imported by that."""
    module, name = definition.__module__, definition.__qualname__
    found = getattr(sys.modules.get(module), name, None)
    return f"{module}:{name}" if found is definition and module != "__main__" else None


def installed(group: str) -> dict[str, EntryPoint]:
    """What installed packages offer under an entry point group, by name."""
    return {each.name: each for each in entry_points(group=group)}


def load_installed(entry: EntryPoint, what: str) -> Any:
    return load_object(entry.value.partition("[")[0].strip(), what)


def refuse_unnamed(
    references: Iterable[str], named: Callable[[], Collection[str]], where: Path
) -> None:
    """`UserError` for code that a file names, but neither a config nor an earlier import."""
    for name in references:
        module = name.partition(":")[0]
        if module not in sys.modules and name not in named():
            raise UserError(
                f"{where} names code that would be run, {name}; if you trust it, import {module} "
                "before loading the file, or load the folder of its run"
            )
