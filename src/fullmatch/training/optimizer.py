"""SGD with Nesterov momentum whose learning rate is a tensor that a recorded step reads."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)


def parameter_groups(*modules: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Weights decay; norms and biases do not, told apart by the module that owns them."""
    decayed: list[Tensor] = []
    kept: list[Tensor] = []
    for module in modules:
        for owner in module.modules():
            for name, parameter in owner.named_parameters(recurse=False):
                free = isinstance(owner, NORMS) or name.endswith("bias")
                (kept if free else decayed).append(parameter)
    groups = [(decayed, weight_decay), (kept, 0.0)]
    return [{"params": params, "weight_decay": decay} for params, decay in groups if params]


def sgd(
    groups: list[dict[str, Any]], *, momentum: float, nesterov: bool, device: torch.device
) -> tuple[torch.optim.SGD, Tensor]:
    """The optimizer and the tensor that holds its learning rate."""
    rate = torch.zeros((), dtype=torch.float32, device=device)
    optimizer = torch.optim.SGD(
        groups, lr=rate, momentum=momentum, nesterov=nesterov and momentum > 0, fused=True
    )
    if momentum > 0:
        # Made beforehand, so that a fresh state has the same keys as a used one; a zero buffer
        # gives the same first step as none.
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimizer, rate


def momentum_buffers(optimizer: torch.optim.SGD) -> Iterator[tuple[Tensor, Tensor]]:
    for parameter, state in optimizer.state.items():
        if "momentum_buffer" in state:
            yield parameter, state["momentum_buffer"]
