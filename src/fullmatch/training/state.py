"""Everything that changes during training; a checkpoint is exactly this."""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.core import Algorithm, Network
from fullmatch.errors import UserError
from fullmatch.training.optimizer import build_sgd, momentum_buffers, parameter_groups


class TrainState:
    """Student, teacher, algorithm, optimizer and step.

    Data order, learning rate and random numbers are functions of seed and step, so they are not
    part of the state.
    """

    def __init__(
        self,
        student: Network,
        algorithm: Algorithm,
        *,
        weight_decay: float,
        momentum: float,
        nesterov: bool,
        device: torch.device,
    ) -> None:
        self.student = student.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.algorithm = algorithm.to(device)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        # One pair of lists per dtype: a mixed list would be copied tensor by tensor.
        pairs = list(zip(self.teacher.buffers(), self.student.buffers(), strict=True))
        self.statistics = [
            (
                [old for old, _ in pairs if old.dtype == dtype],
                [new for old, new in pairs if old.dtype == dtype],
            )
            for dtype in {old.dtype for old, _ in pairs}
        ]
        # Averages of the algorithm's heads, next to those of the network.
        self.heads = {n: p.detach().clone() for n, p in self.algorithm.named_parameters()}
        groups = parameter_groups(self.student, self.algorithm, weight_decay=weight_decay)
        self.optimizer, self.rate = build_sgd(
            groups, momentum=momentum, nesterov=nesterov, device=device
        )
        self.progress = torch.zeros((), device=device)  # share of the steps that are done
        self.totals = MetricTotals(device)
        self.step = 0
        self.device = device

    def train(self) -> None:
        self.student.train()
        self.algorithm.train()
        self.teacher.train()

    @torch.no_grad()
    def update_teacher(self, decay: float) -> None:
        """Move the teacher's parameters towards the student's, and copy its statistics."""
        average = [*self.teacher.parameters(), *self.heads.values()]
        current = [*self.student.parameters(), *self.algorithm.parameters()]
        torch._foreach_lerp_(average, current, 1.0 - decay)
        for old, new in self.statistics:
            torch._foreach_copy_(old, new)

    def teacher_algorithm(self) -> Algorithm:
        """The algorithm with averaged heads, for predictions of the teacher."""
        if not self.heads:
            return self.algorithm
        averaged = copy.deepcopy(self.algorithm)
        averaged.load_state_dict(self.algorithm.state_dict() | self.heads)
        return averaged

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor that changes, with its name; not copies."""
        modules: dict[str, nn.Module] = {
            "student": self.student,
            "teacher": self.teacher,
            "algorithm": self.algorithm,
        }
        for prefix, module in modules.items():
            for name, tensor in module.state_dict().items():
                yield f"{prefix}.{name}", tensor
        for name, tensor in self.heads.items():
            yield f"heads.{name}", tensor
        names = {p: f"student.{n}" for n, p in self.student.named_parameters()}
        names |= {p: f"algorithm.{n}" for n, p in self.algorithm.named_parameters()}
        for parameter, buffer in momentum_buffers(self.optimizer):
            yield f"momentum.{names[parameter]}", buffer
        if self.totals.sums is not None:
            yield "totals", self.totals.sums

    def state_dict(self) -> dict[str, Tensor]:
        # Contiguous copies, since safetensors rejects channels_last and shared memory.
        return {
            name: tensor.detach().to("cpu", copy=True).contiguous()
            for name, tensor in self.tensors()
        }

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Tensor], *, step: int, metrics: list[str]) -> None:
        if metrics:
            self.totals.begin(metrics)
        own = dict(self.tensors())
        if own.keys() != state.keys():
            differing = ", ".join(sorted(own.keys() ^ state.keys())[:3])
            raise ValueError(f"the saved state is of another model: {differing} ...")
        for name, tensor in own.items():
            if tensor.shape != state[name].shape:
                shape, expected = tuple(state[name].shape), tuple(tensor.shape)
                raise ValueError(f"{name} has the shape {shape}, expected {expected}")
            tensor.copy_(state[name])
        self.step = step


class MetricTotals:
    """Sums of the metrics since they were last read, as one tensor on the device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.one = torch.ones(1, device=device)
        self.names: list[str] = []
        self.sums: Tensor | None = None  # (M, 2): numerators and denominators

    def begin(self, names: list[str]) -> None:
        self.names = names
        self.sums = torch.zeros(len(names), 2, device=self.device)

    @torch.no_grad()
    def add(self, metrics: dict[str, Tensor]) -> None:
        """Add the metrics of a step; every step must have the same ones."""
        if self.sums is None:
            self.begin(list(metrics))
        assert self.sums is not None
        if differing := sorted(metrics.keys() ^ set(self.names)):
            raise UserError(
                f"the metric {differing[0]!r} is missing in some steps; report the same metrics in "
                "every step, such as a core.ratio with a denominator of 0"
            )
        parts: list[Tensor] = []  # concatenated at once, since every copy is a kernel
        for value in (metrics[name].float() for name in self.names):
            parts += [value.view(2)] if value.dim() else [value.view(1), self.one]
        self.sums += torch.cat(parts).view(-1, 2)

    def read(self) -> dict[str, float]:
        """Means since the last call; a ratio with a denominator of 0 is left out."""
        if self.sums is None:
            return {}
        with distributed.collective():
            rows = distributed.total(self.sums).tolist()
        self.sums.zero_()
        return {
            name: numerator / denominator
            for name, (numerator, denominator) in zip(self.names, rows, strict=True)
            if denominator
        }
