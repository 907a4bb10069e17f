"""One training step, as one callable that reads and writes only tensors on the device."""

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

RESERVED = ("loss", "rate", "step", "seconds", "evaluation")  # what a line of the log says itself


class Augmentation(nn.Module):
    """From stored images to the views that an algorithm asked for."""

    def __init__(self, augment: Augmenter, views: Views) -> None:
        super().__init__()
        self.augment, self.views = augment, views

    def draw(self, raw: RawBatch) -> tuple[Tensor, ...]:
        """The random numbers of every view, in their order."""
        labeled = (self.augment.draw(raw.labeled, view) for view in self.views.labeled)
        unlabeled = (self.augment.draw(raw.unlabeled, view) for view in self.views.unlabeled)
        return (*labeled, *unlabeled)

    @torch.no_grad()
    def forward(self, raw: RawBatch, chances: tuple[Tensor, ...] | None = None) -> Batch:
        """`chances` are what `draw` gives, and are drawn here if left out."""
        every = iter(self.draw(raw) if chances is None else chances)
        return Batch(
            tuple(self.view(raw.labeled, view, next(every)) for view in self.views.labeled),
            raw.labels,
            raw.labeled_index,
            tuple(self.view(raw.unlabeled, view, next(every)) for view in self.views.unlabeled),
            raw.unlabeled_index,
            raw.hidden_labels,
        )

    def view(self, images: Tensor, name: str, chance: Tensor) -> Tensor:
        view: Tensor = self.augment(images, name, chance)
        return view.contiguous(memory_format=torch.channels_last)


class Loss(nn.Module):
    """From views to the objective: both networks and the algorithm in one forward."""

    def __init__(self, student: Network, teacher: Network, algorithm: Algorithm) -> None:
        super().__init__()
        self.student, self.teacher, self.algorithm = student, teacher, algorithm

    def forward(self, batch: Batch, progress: Tensor) -> Objective:
        objective: Objective = self.algorithm(self.student, self.teacher, batch, progress)
        # Detached in here, or compiled code would compute gradients of what is only reported.
        metrics = {
            name: value.detach() if isinstance(value, Tensor) else value
            for name, value in objective.metrics.items()
        }
        return Objective(objective.loss, metrics)


class TrainingStep:
    """Forward, backward, update and moving average; the same code eager, compiled or recorded.

    `mark` is told when each stage ends; whoever wants to time the stages sets it.
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
        state.follow(self.ema)
        state.totals.add(reported(objective))
        mark("update")


def reported(objective: Objective) -> dict[str, Tensor]:
    """The loss and the metrics by name, once each is what a log can hold.

    Only names, types and shapes are looked at, which the host knows without asking the device.
    """
    for name, value in objective.metrics.items():
        if name in RESERVED:
            raise UserError(
                f"the metric {name!r} has a name that the log itself uses ({', '.join(RESERVED)}); "
                "give it another"
            )
        if not isinstance(value, Tensor) or value.shape not in ((), (2,)):
            shape = f" of shape {tuple(value.shape)}" if isinstance(value, Tensor) else ""
            raise UserError(
                f"the metric {name!r} is a {type(value).__name__}{shape}; make it a tensor of no "
                "dimensions, such as a mean, or a core.ratio"
            )
        if value.device != objective.loss.device:
            raise UserError(
                f"the metric {name!r} is on {value.device}, the loss on {objective.loss.device}; "
                "make it where the loss is made"
            )
    return {"loss": objective.loss, **objective.metrics}


def autocast(device: torch.device, bf16: bool) -> contextlib.AbstractContextManager[object]:
    # No cache of cast weights: one made in a pass without gradient would serve the others too.
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16, cache_enabled=False)
