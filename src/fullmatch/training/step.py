"""One training step: a callable that reads and writes only tensors on the device."""

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.augment.views import Augmenter
from fullmatch.core import Algorithm, Batch, Network, Objective, Views
from fullmatch.data.feed import Feed, RawBatch
from fullmatch.errors import UserError
from fullmatch.training.state import TrainState

RESERVED = ("loss", "rate", "step", "seconds", "evaluation")  # names that every log record has


class Augmentation(nn.Module):
    """Turns stored images into the views that an algorithm needs."""

    def __init__(self, augment: Augmenter, views: Views) -> None:
        super().__init__()
        self.augment, self.views = augment, views

    def draw(self, raw: RawBatch) -> tuple[Tensor, ...]:
        """The random numbers of every view, in order."""
        labeled = (self.augment.draw(raw.labeled, view) for view in self.views.labeled)
        unlabeled = (self.augment.draw(raw.unlabeled, view) for view in self.views.unlabeled)
        return (*labeled, *unlabeled)

    @torch.no_grad()
    def forward(self, raw: RawBatch, chances: tuple[Tensor, ...] | None = None) -> Batch:
        """`chances` are the result of `draw`; they are drawn here if left out."""
        remaining = iter(self.draw(raw) if chances is None else chances)
        return Batch(
            tuple(self.view(raw.labeled, view, next(remaining)) for view in self.views.labeled),
            raw.labels,
            raw.labeled_index,
            tuple(self.view(raw.unlabeled, view, next(remaining)) for view in self.views.unlabeled),
            raw.unlabeled_index,
            raw.hidden_labels,
        )

    def view(self, images: Tensor, name: str, chance: Tensor) -> Tensor:
        view: Tensor = self.augment(images, name, chance)
        return view.contiguous(memory_format=torch.channels_last)


class Loss(nn.Module):
    """Turns views into the objective: both networks and the algorithm in one forward."""

    def __init__(self, student: Network, teacher: Network, algorithm: Algorithm) -> None:
        super().__init__()
        self.student, self.teacher, self.algorithm = student, teacher, algorithm

    def forward(self, batch: Batch, progress: Tensor) -> Objective:
        objective: Objective = self.algorithm(self.student, self.teacher, batch, progress)
        # Detached here, since compiled code would otherwise compute gradients of the metrics.
        metrics = {
            name: value.detach() if isinstance(value, Tensor) else value
            for name, value in objective.metrics.items()
        }
        return Objective(objective.loss, metrics)


class TrainingStep:
    """Forward, backward, update and moving average; the same code eager, compiled or recorded.

    `mark` is called with the name of each stage when it ends; a benchmark sets it.
    """

    def __init__(
        self,
        state: TrainState,
        feed: Feed,
        augmentation: Callable[[RawBatch], Batch],
        loss: Callable[[Batch, Tensor], Objective],
        *,
        ema: float,
        clip: float,
        bf16: bool,
    ) -> None:
        self.state, self.feed = state, feed
        self.augmentation, self.loss = augmentation, loss
        self.ema, self.clip, self.bf16 = ema, clip, bf16
        self.parameters = [
            parameter for group in state.optimizer.param_groups for parameter in group["params"]
        ]
        self.mark: Callable[[str], None] = lambda stage: None

    def __call__(self) -> None:
        state, mark = self.state, self.mark
        mark("start")
        batch = self.augmentation(self.feed.batch())
        mark("augmentation")
        with autocast(state.device, self.bf16):
            objective = self.loss(batch, state.progress)
        mark("forward")
        objective.loss.backward()  # type: ignore[no-untyped-call]
        distributed.average_gradients(self.parameters)
        mark("backward")
        if self.clip:
            nn.utils.clip_grad_norm_(self.parameters, self.clip, foreach=True)
        state.optimizer.step()
        state.optimizer.zero_grad(set_to_none=True)
        state.update_teacher(self.ema)
        state.totals.add(checked_metrics(objective))
        mark("update")


def checked_metrics(objective: Objective) -> dict[str, Tensor]:
    """The loss and the metrics by name; raises an error for what a log cannot hold.

    Checks only names, types and shapes, which the host knows without waiting for the device.
    """
    for name, value in objective.metrics.items():
        if name in RESERVED:
            raise UserError(
                f"the metric {name!r} has a reserved name ({', '.join(RESERVED)}); rename it"
            )
        if not isinstance(value, Tensor) or value.shape not in ((), (2,)):
            shape = f" of shape {tuple(value.shape)}" if isinstance(value, Tensor) else ""
            raise UserError(
                f"the metric {name!r} is a {type(value).__name__}{shape}; make it a 0-d tensor, "
                "such as a mean, or a core.ratio"
            )
        if value.device != objective.loss.device:
            raise UserError(
                f"the metric {name!r} is on {value.device}, the loss on {objective.loss.device}; "
                "compute it on the device of the loss"
            )
    return {"loss": objective.loss, **objective.metrics}


def autocast(device: torch.device, bf16: bool) -> contextlib.AbstractContextManager[object]:
    # No cache of cast weights: weights cast without gradient would be reused by other passes.
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16, cache_enabled=False)
