"""A toy problem of four textures, and a small training loop."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fullmatch.algorithms import algorithm
from fullmatch.core import Algorithm, Batch, Network, Objective, Views
from tests.networks import TinyNetwork, tiny_task

TASK = tiny_task(num_classes=4, num_labeled=16, num_unlabeled=128)
NOISE = {"weak": 0.3, "strong": 0.7}


def spec_of(name: str, folder: Path) -> Any:
    """The spec with this name; if it needs class embeddings, it gets a file."""
    spec = algorithm(name)
    if spec.missing == "embeddings":
        rows = np.random.default_rng(0).normal(size=(TASK.num_classes, 8))
        np.save(folder / "embeddings.npy", rows)
        spec = replace(spec, embeddings=str(folder / "embeddings.npy"))
    return spec


def textures(count: int) -> tuple[Tensor, Tensor]:
    """Rows, columns, checkerboards or diagonals, as images and labels."""
    y, x = torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")
    patterns = torch.stack([y % 2, x % 2, (x + y) % 2, (x + y) // 2 % 2]).float() * 2 - 1
    labels = torch.arange(count) % 4
    return patterns[labels].unsqueeze(1) + 0.5 * torch.randn(count, 1, 8, 8), labels


class Toy:
    """Student, teacher and algorithm on the textures; the same seed gives the same run."""

    def __init__(self, spec: Any, *, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.student: Network = TinyNetwork(TASK.num_classes)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.algorithm: Algorithm = spec.build(TASK)
        self.labeled, self.unlabeled = textures(TASK.num_labeled), textures(TASK.num_unlabeled)

    def batch(self, views: Views, labeled: int = 8, unlabeled: int = 16) -> Batch:
        index = torch.randperm(TASK.num_unlabeled)[:unlabeled]
        labeled_index = torch.randperm(TASK.num_labeled)[:labeled]
        (images, labels), (pictures, hidden) = self.labeled, self.unlabeled

        def view(source: Tensor, name: str) -> Tensor:
            return source + NOISE[name] * torch.randn_like(source)

        return Batch(
            tuple(view(images[labeled_index], name) for name in views.labeled),
            labels[labeled_index],
            labeled_index,
            tuple(view(pictures[index], name) for name in views.unlabeled),
            index,
            hidden[index],
        )

    def objective(self, batch: Batch, progress: float) -> Objective:
        return self.algorithm(self.student, self.teacher, batch, torch.tensor(progress))

    def parameters(self) -> list[Tensor]:
        return [*self.student.parameters(), *self.algorithm.parameters()]

    def train(self, steps: int, *, of: int = 400, rate: float = 0.05) -> list[float]:
        """The losses of the first steps of a run of `of` steps."""
        optimizer = torch.optim.SGD(self.parameters(), lr=rate, momentum=0.9, nesterov=True)
        losses = []
        for step in range(steps):
            objective = self.objective(self.batch(self.algorithm.views), step / of)
            objective.loss.backward()
            torch.nn.utils.clip_grad_norm_(self.parameters(), 3.0)
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                for average, current in zip(
                    self.teacher.parameters(), self.student.parameters(), strict=True
                ):
                    average.lerp_(current, 0.1)
            losses.append(float(objective.loss.detach()))
        return losses

    @torch.no_grad()
    def error(self) -> float:
        """Error of the student on new images."""
        images, labels = textures(256)
        self.student.eval()
        self.algorithm.eval()
        label = self.algorithm.predict(self.student, images).argmax(dim=1)
        self.student.train()
        self.algorithm.train()
        return float((label != labels).float().mean())
