"""One training step: a callable that reads and writes only tensors on the device."""

import contextlib
import math
import warnings
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from fullmatch import distributed
from fullmatch.augment.views import Augmenter
from fullmatch.core import Algorithm, Batch, Network, Objective, Views
from fullmatch.data.feed import Feed, RawBatch
from fullmatch.errors import UserError
from fullmatch.training.phases import MAIN, Phase
from fullmatch.training.state import TrainState

RESERVED = ("loss", "rate", "step", "seconds", "evaluation")  # names that every log record has


class Augmentation(nn.Module):
    """Turns stored images into the views that an algorithm needs."""

    def __init__(self, augment: Augmenter, views: Views, *, join_labeled: bool = False) -> None:
        super().__init__()
        self.augment, self.views = augment, views
        self.join_labeled = join_labeled  # the labeled views as one, of several times the images

    def draw(self, raw: RawBatch) -> tuple[Tensor, ...]:
        """The random numbers of every view, in order.

        Every process draws those of the whole batch, which do not depend on how it is shared.
        """
        labeled = [(raw.labeled, view) for view in self.views.labeled]
        pairs = labeled + [(raw.unlabeled, view) for view in self.views.unlabeled]
        processes, rank = distributed.world_size(), distributed.rank()
        return tuple(
            self.augment.draw(images, view, processes)[:, rank::processes] for images, view in pairs
        )

    @torch.no_grad()
    def forward(self, raw: RawBatch, chances: tuple[Tensor, ...] | None = None) -> Batch:
        """`chances` are the result of `draw`; they are drawn here if left out."""
        remaining = iter(self.draw(raw) if chances is None else chances)
        batch = Batch(
            tuple(self.view(raw.labeled, view, next(remaining)) for view in self.views.labeled),
            raw.labels,
            raw.labeled_index,
            tuple(self.view(raw.unlabeled, view, next(remaining)) for view in self.views.unlabeled),
            raw.unlabeled_index,
            raw.hidden_labels,
        )
        return join_labeled_views(batch) if self.join_labeled else batch

    def view(self, images: Tensor, name: str, chance: Tensor) -> Tensor:
        view: Tensor = self.augment(images, name, chance)
        return view.contiguous(memory_format=torch.channels_last)


def join_labeled_views(batch: Batch) -> Batch:
    """All labeled views as one view, in which every labeled image occurs once per view."""
    count = len(batch.labeled)
    return batch._replace(
        labeled=(torch.cat(batch.labeled),),
        labels=batch.labels.repeat(count),
        labeled_index=batch.labeled_index.repeat(count),
    )


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


def share_loss(loss: nn.Module, *, static: bool) -> Callable[[Batch, Tensor], Objective]:
    """The loss; several processes average its gradients."""
    return loss if distributed.world_size() == 1 else average_gradients(loss, static=static)


def average_gradients(loss: nn.Module, *, static: bool) -> DistributedDataParallel:
    """Gradients become their mean over all processes while the backward pass runs.

    Buffers are not sent: every process computes the same ones from gathered rows. A parameter may
    have no gradient, as a head that a method replaces. Which ones is the same in every step: with
    `static`, torch finds out once. It cannot in compiled code, for a step in parts, or where
    several losses share parameters.
    """
    # The new name of the first option does not exist in earlier versions of torch.
    warnings.filterwarnings("ignore", message="`broadcast_buffers` is deprecated")
    return DistributedDataParallel(
        loss,
        broadcast_buffers=False,
        gradient_as_bucket_view=True,
        static_graph=static,
        find_unused_parameters=not static,
    )


class TrainingStep:
    """Forward, backward, update and moving average; the same code eager, compiled or recorded.

    `ema` is the decay of the teacher; None: the state's, which changes from step to step.
    `mark` is called with the name of each stage when it ends; a benchmark sets it.
    """

    def __init__(
        self,
        state: TrainState,
        feed: Feed,
        augmentation: Callable[[RawBatch], Batch],
        loss: Callable[[Batch, Tensor], Objective],
        *,
        ema: float | None,
        clip: float,
        bf16: bool,
        accumulate: int = 1,
        phase: Phase = MAIN,
    ) -> None:
        self.state, self.feed = state, feed
        self.augmentation, self.loss, self.phase = augmentation, loss, phase
        self.ema, self.clip, self.bf16, self.accumulate = ema, clip, bf16, accumulate
        self.parameters = [
            parameter for group in state.optimizer.param_groups for parameter in group["params"]
        ]
        self.clipped = clipped_groups(state, self.parameters)
        self.mark: Callable[[str], None] = lambda stage: None

    def __call__(self) -> None:
        state, mark = self.state, self.mark
        mark("start")
        raw = take_unlabeled(self.feed.batch(), self.phase.unlabeled)
        parts = split_batch(raw, self.accumulate)
        metrics = [self.add_gradients(raw, last=raw is parts[-1]) for raw in parts]
        mark("backward")
        if self.clip:
            for group in self.clipped:
                nn.utils.clip_grad_norm_(group, self.clip, foreach=True)
        state.optimizer.step()
        state.optimizer.zero_grad(set_to_none=True)
        state.update_teacher(self.ema)
        for each in metrics:
            state.totals.add(each, self.phase.self_supervised)
        mark("update")

    def add_gradients(self, raw: RawBatch, *, last: bool) -> dict[str, Tensor]:
        """Of a batch, or of its share in one; returns the metrics.

        Processes share their gradients with those of the last part.
        """
        state, mark = self.state, self.mark
        batch = self.augmentation(raw)
        mark("augmentation")
        loss = self.loss
        waits = not last and isinstance(loss, DistributedDataParallel)
        with cast(Any, loss).no_sync() if waits else contextlib.nullcontext():
            with autocast(state.device, self.bf16):
                objective = loss(batch, state.progress)
            mark("forward")
            share = objective.loss if self.accumulate == 1 else objective.loss / self.accumulate
            share.backward()  # type: ignore[no-untyped-call]
        return checked_metrics(objective)


def clipped_groups(state: TrainState, parameters: list[Tensor]) -> list[list[Tensor]]:
    """The parameters whose gradients share a limit: all of them, or network and heads apart."""
    if not state.algorithm.clips_separately:
        return [parameters]
    heads = set(state.algorithm.parameters())
    return [
        [parameter for parameter in parameters if parameter not in heads],
        [parameter for parameter in parameters if parameter in heads],
    ]


def take_unlabeled(raw: RawBatch, share: float) -> RawBatch:
    """The batch with its first unlabeled images only, if the share is less than 1."""
    if share == 1:
        return raw
    count = math.ceil(share * len(raw.unlabeled))
    return raw._replace(
        unlabeled=raw.unlabeled[:count],
        unlabeled_index=raw.unlabeled_index[:count],
        hidden_labels=raw.hidden_labels[:count],
    )


def split_batch(raw: RawBatch, parts: int) -> list[RawBatch]:
    """Equal parts of a batch, each with labeled and unlabeled images."""
    if parts == 1:
        return [raw]
    for count, kind in ((len(raw.labels), "labeled"), (len(raw.hidden_labels), "unlabeled")):
        if count % parts:
            raise UserError(
                f"training.accumulate = {parts} does not divide the {count} {kind} images of a "
                "batch; choose a number that does"
            )
    return [RawBatch(*each) for each in zip(*(rows.chunk(parts) for rows in raw), strict=True)]


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
