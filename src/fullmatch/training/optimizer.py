"""SGD with Nesterov momentum; the learning rate is a tensor, so that a recorded step reads it."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)


def parameter_groups(*modules: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Weight decay for all parameters except those of norms, and biases."""
    decayed: list[Tensor] = []
    undecayed: list[Tensor] = []
    for module in modules:
        for owner in module.modules():
            for name, parameter in owner.named_parameters(recurse=False):
                exempt = isinstance(owner, NORMS) or name.endswith("bias")
                (undecayed if exempt else decayed).append(parameter)
    groups = [(decayed, weight_decay), (undecayed, 0.0)]
    return [{"params": params, "weight_decay": decay} for params, decay in groups if params]


def build_sgd(
    groups: list[dict[str, Any]], *, momentum: float, nesterov: bool, device: torch.device
) -> tuple[torch.optim.SGD, Tensor]:
    """The optimizer and the tensor that holds its learning rate."""
    rate = torch.zeros((), dtype=torch.float32, device=device)
    optimizer = torch.optim.SGD(
        groups, lr=rate, momentum=momentum, nesterov=nesterov and momentum > 0, fused=True
    )
    if momentum > 0:
        # Created here, so that a new state has the same keys as a used one; a zero buffer gives
        # the same first step as no buffer.
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
    return optimizer, rate


def momentum_buffers(optimizer: torch.optim.SGD) -> Iterator[tuple[Tensor, Tensor]]:
    for parameter, state in optimizer.state.items():
        if "momentum_buffer" in state:
            yield parameter, state["momentum_buffer"]
