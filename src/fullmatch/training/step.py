"""One training step, as one callable that reads and writes only tensors on the device."""

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor, nn

from fullmatch.augment.views import Augmenter
from fullmatch.core import Algorithm, Batch, Network, Objective
from fullmatch.data.feed import Feed, RawBatch
from fullmatch.training.state import TrainState


class Loss(nn.Module):
    """From raw images to the objective: augmentation, networks and algorithm in one forward."""

    def __init__(
        self, augment: Augmenter, student: Network, teacher: Network, algorithm: Algorithm
    ) -> None:
        super().__init__()
        self.augment, self.algorithm = augment, algorithm
        self.student, self.teacher = student, teacher

    def forward(self, raw: RawBatch, progress: Tensor) -> Objective:
        views = self.algorithm.views
        with torch.no_grad():
            batch = Batch(
                tuple(self.view(raw.labeled, view) for view in views.labeled),
                raw.labels,
                raw.labeled_index,
                tuple(self.view(raw.unlabeled, view) for view in views.unlabeled),
                raw.index,
                raw.hidden_labels,
            )
        objective: Objective = self.algorithm(self.student, self.teacher, batch, progress)
        return objective

    def view(self, images: Tensor, name: str) -> Tensor:
        view: Tensor = self.augment(images, name)
        return view.contiguous(memory_format=torch.channels_last)


class TrainingStep:
    """Forward, backward, update and moving average; the same code eager, compiled or recorded."""

    def __init__(
        self,
        state: TrainState,
        feed: Feed,
        loss: Callable[[RawBatch, Tensor], Objective],
        *,
        ema: float,
        clip: float,
        bf16: bool,
    ) -> None:
        self.state, self.feed, self.loss = state, feed, loss
        self.ema, self.clip, self.bf16 = ema, clip, bf16
        self.parameters = [
            parameter for group in state.optimizer.param_groups for parameter in group["params"]
        ]

    def __call__(self) -> None:
        state = self.state
        with autocast(state.device, self.bf16):
            objective = self.loss(self.feed.batch(), state.progress)
        objective.loss.backward()  # type: ignore[no-untyped-call]
        if self.clip:
            nn.utils.clip_grad_norm_(self.parameters, self.clip, foreach=True)
        state.optimizer.step()
        state.optimizer.zero_grad(set_to_none=True)
        state.follow(self.ema)
        state.totals.add({"loss": objective.loss, **objective.metrics})


def autocast(device: torch.device, bf16: bool) -> contextlib.AbstractContextManager[object]:
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16)
