"""Simple references of the methods that mix images and targets."""

import copy
from typing import Any

import torch
from torch import Tensor

from fullmatch.augment.mix import MixupDraws, draw_mixup, mixup
from fullmatch.core import Batch, Network
from tests.reference.consistency import Memoryless, squared
from tests.reference.rows import (
    Row,
    column_means,
    cross_entropy,
    logits_of,
    mean,
    moving_average,
    normalize,
    one_hot,
    softmax,
)


def sharpen(probs: Row, temperature: float) -> Row:
    return normalize([p ** (1 / temperature) for p in probs])


def mix(images: Tensor, targets: list[Row], draws: MixupDraws) -> tuple[Tensor, list[Row]]:
    """Like `mixup`, image by image; the weights are read from a mixed identity matrix."""
    size = len(images)
    _, blend = mixup(torch.zeros(size, 1), torch.eye(size), draws)
    pictures, rows = [], []
    for weights in blend.tolist():
        pictures.append(sum(w * image for w, image in zip(weights, images, strict=True)))
        columns = zip(*targets, strict=True)
        rows.append([sum(w * t for w, t in zip(weights, c, strict=True)) for c in columns])
    return torch.stack(pictures), rows


def mixed_probs(spec: Any, student: Network, pictures: Tensor, size: int) -> list[Row]:
    """Predictions of the mixed pictures, whose place decides their batch if interleaved."""
    if not spec.interleave:
        return [softmax(row) for row in logits_of(student, pictures)[0]]
    count = len(pictures) // size
    chunk, slot = {}, {}
    for at in range(len(pictures)):
        home, place = divmod(at, size)
        # Which of `count` nearly equal parts the place is in; the last parts are the longer ones.
        short, longer = size // count, size % count
        limit = short * (count - longer)
        part = place // short if place < limit else count - longer + (place - limit) // (short + 1)
        chunk[at] = part if home == 0 else 0 if home == part else home
        slot[at] = place
    result: list[Row] = [[]] * len(pictures)
    for home in range(count):
        members = sorted((at for at in chunk if chunk[at] == home), key=slot.__getitem__)
        rows = logits_of(student, pictures[members])[0]
        for at, row in zip(members, rows, strict=True):
            result[at] = softmax(row)
    return result


class MixMatch(Memoryless):
    def __call__(self, student: Network, teacher: Network, batch: Batch, progress: float) -> float:
        views = [logits_of(student, view)[0] for view in batch.unlabeled]
        guesses = []
        for logits in zip(*views, strict=True):
            average = column_means([softmax(row) for row in logits])
            guesses.append(sharpen(average, self.spec.temperature))
        known = [one_hot(label, len(guesses[0])) for label in batch.labels.tolist()]
        pictures = torch.cat([batch.labeled[0], *batch.unlabeled])
        draws = draw_mixup(self.spec.alpha, len(pictures), pictures.device)
        pictures, targets = mix(pictures, known + guesses + guesses, draws)
        size = len(known)
        probs = mixed_probs(self.spec, student, pictures, size)
        losses = [cross_entropy(t, p) for t, p in zip(targets[:size], probs[:size], strict=True)]
        distance = squared(probs[size:], targets[size:])
        return mean(losses) + self.spec.coefficient * self.ramp(progress) * distance


class ReMixMatch(Memoryless):
    def __init__(self, spec: Any, algorithm: Any) -> None:
        super().__init__(spec, algorithm)
        self.turn = algorithm.turn
        self.prior: Row = algorithm.class_prior.tolist()
        self.average: Row | None = None

    def memory(self) -> dict[str, Any]:
        return {"predicted.mean": self.average, "predicted.started": True}

    def __call__(self, student: Network, teacher: Network, batch: Batch, progress: float) -> float:
        spec = self.spec
        weak, strong, other = batch.unlabeled
        probs = [softmax(row) for row in logits_of(student, weak)[0]]
        now = column_means(probs)
        self.average = (
            now if self.average is None else moving_average(self.average, now, spec.momentum)
        )
        guesses = []
        for row in probs:
            scaled = [
                p * (y + 1e-6) / (m + 1e-6)
                for p, y, m in zip(row, self.prior, self.average, strict=True)
            ]
            guesses.append(sharpen(normalize(scaled), spec.temperature))
        known = [one_hot(label, len(now)) for label in batch.labels.tolist()]
        pictures = torch.cat([batch.labeled[0], strong, other, weak])
        draws = draw_mixup(spec.alpha, len(pictures), pictures.device, others=len(strong))
        targets = known + guesses + guesses + guesses
        pictures, targets = mix(pictures, targets, draws)
        probs = mixed_probs(spec, student, pictures, len(known))
        losses = [cross_entropy(t, p) for t, p in zip(targets, probs, strict=True)]
        unmixed = [softmax(row) for row in logits_of(student, strong)[0]]
        own = mean([cross_entropy(g, p) for g, p in zip(guesses, unmixed, strict=True)])
        size = len(known)
        unlabeled = spec.coefficient * mean(losses[size:]) + spec.unmixed * own
        rotation = self.rotation(student, strong, draws.others)
        return mean(losses[:size]) + self.ramp(progress) * unlabeled + spec.rotation * rotation

    def rotation(self, student: Network, images: Tensor, chances: Tensor) -> float:
        turns = [int(4 * chance) for chance in chances.tolist()]
        pairs = zip(images, turns, strict=True)
        pictures = torch.stack([torch.rot90(image, turn, (1, 2)) for image, turn in pairs])
        rows = self.turn(copy.deepcopy(student)(pictures).features).tolist()
        return mean(
            [
                cross_entropy(one_hot(turn, 4), softmax(row))
                for row, turn in zip(rows, turns, strict=True)
            ]
        )
