"""Custom operators: functions that compiled code calls without looking inside."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef

OPERATORS: list[str] = []  # names of all that `custom_operator` has made
Function = Callable[..., Any]


def custom_operator(
    name: str, mutates_args: Sequence[str] = ()
) -> Callable[[Function], CustomOpDef]:
    """Decorate a function to make it the operator `fullmatch::name`."""
    OPERATORS.append(name)
    return torch.library.custom_op(f"fullmatch::{name}", mutates_args=mutates_args)


def register_operators() -> None:
    """Register our operators with the compiler before it meets them.

    Before torch 2.13, the compiler registers an unknown operator on first use and logs a
    description of its operands, and of theirs in turn. That text doubles with every block of a
    residual network and takes minutes to write.
    """
    if torch.__version__ >= (2, 13):  # type: ignore[operator]
        return
    from torch._inductor import lowering
    from torch._library.utils import get_layout_constraint_tag

    for name in OPERATORS:
        operator = getattr(torch.ops.fullmatch, name).default
        if operator not in lowering.lowerings:
            tag = get_layout_constraint_tag(operator, with_default=True)
            constraint = lowering.tag_to_layout_constraint(tag)
            lowering.make_fallback(operator, layout_constraint=constraint)  # type: ignore[no-untyped-call]
