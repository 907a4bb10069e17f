"""SGD, AdamW, or a class of the user; learning rates are tensors where a step is recorded."""

import inspect
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fullmatch.config import OptimizerConfig
from fullmatch.errors import UserError, did_you_mean
from fullmatch.plugins import is_reference, load_object

NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)
# Tensors that an optimizer keeps per parameter, and the names they have in a checkpoint.
# Those of other optimizers have their own names, after `OTHER`.
BUFFERS = {"momentum_buffer": "momentum", "exp_avg": "mean", "exp_avg_sq": "square", "step": "age"}
OTHER = "optimizer:"


@dataclass(frozen=True)
class ScaledRate:
    """The learning rate of a group of parameters, as a multiple of the scheduled one."""

    tensor: Tensor
    scale: float

    def fill(self, rate: float) -> None:
        self.tensor.fill_(rate * self.scale)

    def value(self) -> float:
        return float(self.tensor)


@dataclass(frozen=True)
class GroupRate:
    """The same for an optimizer of the user, which reads a plain number."""

    group: dict[str, Any]
    scale: float

    def fill(self, rate: float) -> None:
        self.group["lr"] = rate * self.scale

    def value(self) -> float:
        return float(self.group["lr"])


def records_steps(config: OptimizerConfig) -> bool:
    """Whether the optimizer works in a step that is recorded on a GPU."""
    return not is_reference(config.name)


def parameter_groups(
    *modules: nn.Module, weight_decay: float, scales: Mapping[Tensor, float] | None = None
) -> list[dict[str, Any]]:
    """Parameters by weight decay and scale of the learning rate.

    Norms and biases do not decay. `scales` has parameters whose scale is not 1.
    """
    scales = scales or {}
    groups: dict[tuple[float, float], list[Tensor]] = {(1.0, weight_decay): [], (1.0, 0.0): []}
    for module in modules:
        for owner in module.modules():
            for name, parameter in owner.named_parameters(recurse=False):
                if not parameter.requires_grad:
                    continue
                exempt = isinstance(owner, NORMS) or name.endswith("bias")
                key = (scales.get(parameter, 1.0), 0.0 if exempt else weight_decay)
                groups.setdefault(key, []).append(parameter)
    return [
        {"params": params, "weight_decay": decay, "scale": scale}
        for (scale, decay), params in groups.items()
        if params
    ]


def build_optimizer(
    groups: list[dict[str, Any]], config: OptimizerConfig, device: torch.device
) -> tuple[torch.optim.Optimizer, Sequence[ScaledRate | GroupRate]]:
    """The optimizer, and what holds its learning rates."""
    groups = [dict(group) for group in groups]
    if is_reference(config.name):
        return build_own_optimizer(groups, config)
    by_scale: dict[float, Tensor] = {}
    for group in groups:
        scale = group.pop("scale", 1.0)
        rate = torch.zeros((), dtype=torch.float32, device=device)
        group["lr"] = by_scale.setdefault(scale, rate)
    optimizer: torch.optim.Optimizer
    if config.name == "adamw":
        on_gpu = device.type == "cuda"  # where a step may be recorded
        betas = (config.momentum, 0.999)
        optimizer = torch.optim.AdamW(groups, betas=betas, fused=True, capturable=on_gpu)
    else:
        optimizer = torch.optim.SGD(
            groups,
            momentum=config.momentum,
            nesterov=config.nesterov and config.momentum > 0,
            fused=True,
        )
    # Created here, so that a new state has the same keys as a used one; zero buffers give the same
    # first step as none.
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            optimizer.state[parameter].update(new_buffers(parameter, config))
    return optimizer, [ScaledRate(tensor, scale) for scale, tensor in by_scale.items()]


def build_own_optimizer(
    groups: list[dict[str, Any]], config: OptimizerConfig
) -> tuple[torch.optim.Optimizer, list[GroupRate]]:
    """An optimizer by `module:Class`; it gets those settings that its signature names."""
    cls: Any = load_object(config.name, "optimizer")
    if torch.optim.Optimizer not in getattr(cls, "__mro__", ()):
        raise UserError(f"optimizer.name = {config.name} is not a torch.optim.Optimizer; fix it")
    scales = [group.pop("scale", 1.0) for group in groups]
    known = inspect.signature(cls).parameters
    common = {
        "momentum": config.momentum,
        "nesterov": config.nesterov and config.momentum > 0,
        "betas": (config.momentum, 0.999),
    }
    arguments: dict[str, Any] = {name: common[name] for name in common if name in known}
    arguments |= parse_options(config.options)
    try:
        optimizer: torch.optim.Optimizer = cls(groups, lr=config.rate, **arguments)
    except (TypeError, ValueError, RuntimeError) as error:
        unknown = [name for name in arguments if name not in known]
        hint = did_you_mean(unknown[0], known) if unknown else ""
        raise UserError(
            f"optimizer {config.name} does not take these settings ({error}); change "
            f"optimizer.options{hint}"
        ) from None
    pairs = zip(optimizer.param_groups, scales, strict=True)
    return optimizer, [GroupRate(group, scale) for group, scale in pairs]


def parse_options(options: tuple[str, ...]) -> dict[str, Any]:
    """Arguments from `name=value`, with values as TOML has them."""
    try:
        return tomllib.loads("\n".join(options))
    except tomllib.TOMLDecodeError:
        raise UserError(
            f"optimizer.options is {', '.join(options)!r}, expected name=value, such as alpha=0.9"
        ) from None


def new_buffers(parameter: Tensor, config: OptimizerConfig) -> dict[str, Tensor]:
    """What the optimizer keeps for a parameter, before the first step."""
    if config.name == "adamw":
        age = torch.zeros((), dtype=torch.float32, device=parameter.device)
        zeros = torch.zeros_like(parameter)
        return {"step": age, "exp_avg": zeros, "exp_avg_sq": zeros.clone()}
    return {"momentum_buffer": torch.zeros_like(parameter)} if config.momentum > 0 else {}


def optimizer_buffers(optimizer: torch.optim.Optimizer) -> Iterator[tuple[Tensor, str, Tensor]]:
    """Every parameter with the tensors kept for it, by their names in a checkpoint."""
    for parameter, state in optimizer.state.items():
        for key in [*(key for key in BUFFERS if key in state), *(state.keys() - BUFFERS.keys())]:
            value = state[key]
            if value is None:
                continue
            if not isinstance(value, Tensor):
                raise UserError(
                    f"{type(optimizer).__name__} keeps {key} of type {type(value).__name__}; "
                    "make it a tensor, so that checkpoints can hold it"
                )
            yield parameter, BUFFERS.get(key, f"{OTHER}{key}"), value


def fill_buffers(
    optimizer: torch.optim.Optimizer, names: Mapping[Tensor, str], saved: Mapping[str, Tensor]
) -> None:
    """What an optimizer creates in its first step, from a saved state."""
    parameters = {name: parameter for parameter, name in names.items()}
    keys = {name: key for key, name in BUFFERS.items()}
    optimizer.state.clear()
    for name, tensor in saved.items():
        kind, _, owner = name.partition(".")
        if owner in parameters and (kind in keys or kind.startswith(OTHER)):
            parameter = parameters[owner]
            # A count of steps stays on the CPU, as optimizers expect.
            device = parameter.device if tensor.dim() else torch.device("cpu")
            key = keys.get(kind, kind.removeprefix(OTHER))
            optimizer.state[parameter][key] = tensor.to(device, copy=True)
