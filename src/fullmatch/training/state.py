"""Everything that changes during training; a checkpoint is exactly this."""

import copy
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.config import OptimizerConfig
from fullmatch.core import Algorithm, DerivedMemory, Network
from fullmatch.errors import UserError
from fullmatch.training.optimizer import (
    build_optimizer,
    fill_buffers,
    optimizer_buffers,
    parameter_groups,
    records_steps,
)

MOST_METRICS = 64  # that a step can report


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
        optimizer: OptimizerConfig,
        device: torch.device,
        rate_scales: Mapping[Tensor, float] | None = None,
        pretext: Algorithm | None = None,
    ) -> None:
        self.student = student.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.algorithm = algorithm.to(device)
        # What a self-supervised start trains; it is not part of the model.
        self.pretext = None if pretext is None else pretext.to(device)
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
        trained = [self.student, self.algorithm, *([] if pretext is None else [pretext])]
        groups = parameter_groups(*trained, weight_decay=optimizer.weight_decay, scales=rate_scales)
        self.optimizer, self.rates = build_optimizer(groups, optimizer, device)
        self.creates_buffers = not records_steps(optimizer)  # in its first step
        self.progress = torch.zeros((), device=device)  # share of the steps that are done
        self.decay = torch.zeros((), device=device)  # of the teacher in the next step
        self.totals = MetricTotals(device)
        self.step = 0
        self.device = device

    def set_rate(self, rate: float) -> None:
        """The learning rate of the next step."""
        for group in self.rates:
            group.fill(rate)

    def train(self) -> None:
        self.student.train()
        self.algorithm.train()
        self.teacher.train(not self.algorithm.teacher_labels)

    @torch.no_grad()
    def update_teacher(self, decay: float | None) -> None:
        """Move the teacher's parameters toward the student's, and copy its statistics.

        None: by `self.decay`, which a recorded step reads again at each replay.
        """
        average = [*self.teacher.parameters(), *self.heads.values()]
        current = [*self.student.parameters(), *self.algorithm.parameters()]
        if decay is None:
            weight = 1.0 - self.decay
            torch._foreach_lerp_(average, current, [weight] * len(average))
        else:
            torch._foreach_lerp_(average, current, 1.0 - decay)
        self.copy_statistics()

    def copy_statistics(self) -> None:
        """Give the teacher the student's running statistics."""
        for old, new in self.statistics:
            torch._foreach_copy_(old, new)

    def teacher_algorithm(self) -> Algorithm:
        """The algorithm with averaged heads, for predictions of the teacher."""
        if not self.heads:
            return self.algorithm
        averaged = copy.deepcopy(self.algorithm)
        averaged.load_state_dict(self.algorithm.state_dict() | self.heads)
        return averaged

    def modules(self) -> dict[str, nn.Module]:
        modules: dict[str, nn.Module] = {
            "student": self.student,
            "teacher": self.teacher,
            "algorithm": self.algorithm,
        }
        return modules if self.pretext is None else modules | {"pretext": self.pretext}

    def parameter_names(self) -> dict[Tensor, str]:
        return {
            parameter: f"{prefix}.{name}"
            for prefix, module in self.modules().items()
            for name, parameter in module.named_parameters()
        }

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor that changes, with its name; not copies."""
        for prefix, module in self.modules().items():
            for name, tensor in module.state_dict().items():
                yield f"{prefix}.{name}", tensor
        for name, tensor in self.heads.items():
            yield f"heads.{name}", tensor
        names = self.parameter_names()
        for parameter, kind, buffer in optimizer_buffers(self.optimizer):
            yield f"{kind}.{names[parameter]}", buffer
        if self.totals.names:
            yield "totals", self.totals.sums[: len(self.totals.names)]

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
        if self.creates_buffers:
            fill_buffers(self.optimizer, self.parameter_names(), state)
        own = dict(self.tensors())
        if own.keys() != state.keys():
            differing = ", ".join(sorted(own.keys() ^ state.keys())[:3])
            raise ValueError(f"the saved state is of another model: {differing} ...")
        for name, tensor in own.items():
            if tensor.shape != state[name].shape:
                shape, expected = tuple(state[name].shape), tuple(tensor.shape)
                raise ValueError(f"{name} has the shape {shape}, expected {expected}")
            tensor.copy_(state[name])
        for module in self.algorithm.modules():
            if isinstance(module, DerivedMemory):
                module.derive_memory()
        self.totals.keep_in_first()
        self.step = step


class MetricTotals:
    """Sums of the metrics since they were last read, as one tensor on the device.

    The tensor is never replaced, since recorded steps keep writing to it.
    """

    def __init__(self, device: torch.device) -> None:
        self.one, self.zeros = torch.ones(1, device=device), torch.zeros(2, device=device)
        self.names: list[str] = []
        self.sums = torch.zeros(MOST_METRICS, 2, device=device)  # numerators and denominators
        self.expected: dict[bool, set[str]] = {}  # names, in the start and after it

    def begin(self, names: list[str]) -> None:
        self.rename(names)
        self.sums.zero_()

    def rename(self, names: list[str]) -> None:
        if len(names) > MOST_METRICS:
            raise UserError(f"there are {len(names)} metrics; report at most {MOST_METRICS}")
        self.names = names

    @torch.no_grad()
    def add(self, metrics: dict[str, Tensor], self_supervised: bool = False) -> None:
        """Add the metrics of a step; all steps, or all of the start, must have the same ones."""
        expected = self.expected.setdefault(self_supervised, set(metrics))
        if differing := sorted(metrics.keys() ^ expected):
            raise UserError(
                f"the metric {differing[0]!r} is missing in some steps; report the same metrics in "
                "every step, such as a core.ratio with a denominator of 0"
            )
        if added := [name for name in metrics if name not in self.names]:
            self.rename([*self.names, *added])
        parts: list[Tensor] = []  # concatenated at once, since every copy is a kernel
        for value in (metrics.get(name, self.zeros).float() for name in self.names):
            parts += [value.view(2)] if value.dim() else [value.view(1), self.one]
        self.sums[: len(self.names)].add_(torch.cat(parts).view(-1, 2))

    def collect(self) -> None:
        """Move the sums of all processes to the first one, which saves and logs them."""
        if distributed.world_size() > 1:
            self.sums.copy_(distributed.total(self.sums))
            self.keep_in_first()

    def keep_in_first(self) -> None:
        """After they were loaded from where the first process has saved them."""
        if not distributed.is_first():
            self.sums.zero_()

    def read(self) -> dict[str, float]:
        """Means since the last call; a ratio with a denominator of 0 is left out."""
        if not self.names:
            return {}
        rows = distributed.total(self.sums[: len(self.names)]).tolist()
        self.sums.zero_()
        return {
            name: numerator / denominator
            for name, (numerator, denominator) in zip(self.names, rows, strict=True)
            if denominator
        }
