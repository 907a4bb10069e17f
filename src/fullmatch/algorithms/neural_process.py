"""A neural process as a classifier: labeled features are the context for other features."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.banks import Bank
from fullmatch.algorithms.pseudo_labeling import Step
from fullmatch.algorithms.sampling import entropies, log_mean
from fullmatch.core import Objective
from fullmatch.losses import skewed_jensen_shannon
from fullmatch.losses.precision import widen

SLOPE = 0.1


class Gaussian(NamedTuple):
    """A diagonal Gaussian over the latent space, for a whole set of images."""

    mean: Tensor  # (L,)
    deviation: Tensor  # (L,)

    def sample(self, draws: Tensor) -> Tensor:  # (S, L) standard normal -> (S, L)
        return self.mean + self.deviation * draws


class NeuralProcess(nn.Module):
    """Two encoders of labeled features, a Gaussian over their mean, and a decoder.

    For prediction both means come from memory, which holds the encoders' latest outputs.
    """

    draws: Tensor  # (S, L), standard normal, for prediction

    def __init__(
        self, features: int, num_classes: int, *, latent: float, samples: int, rows: int
    ) -> None:
        super().__init__()
        width = max(1, int(features * latent))
        joint = features + num_classes
        self.latent_path = layers(joint, width, width, active=True)
        self.deterministic_path = layers(joint, width, width, active=True)
        self.mean = layers(width, width, width)
        self.scale = layers(width, width, width)
        self.decoder = layers(2 * width + features, features, features, active=True)
        self.classifier = layers(features, num_classes)
        self.register_buffer("draws", torch.randn(samples, width))
        self.latent_bank, self.deterministic_bank = Bank(rows, width), Bank(rows, width)
        for bank in (self.latent_bank, self.deterministic_bank):
            bank.rows[0] = torch.randn(width)
            bank.written += 1

    def draw(self, times: int) -> tuple[Tensor, ...]:  # (S, L) each
        """Drawn in one call, since compiled code does not preserve the order of several calls."""
        return torch.randn((times, *self.draws.shape), device=self.draws.device).unbind()

    def latent(self, features: Tensor, labels: Tensor) -> Tensor:  # (B, D), (B, C) -> (B, L)
        rows: Tensor = self.latent_path(torch.cat([features, labels], dim=1))
        return widen(rows)

    def deterministic(self, features: Tensor, labels: Tensor) -> Tensor:  # -> (B, L)
        rows: Tensor = self.deterministic_path(torch.cat([features, labels], dim=1))
        return widen(rows)

    def gaussian(self, row: Tensor) -> Gaussian:
        scale = F.softplus(widen(self.scale(row)))
        return Gaussian(widen(self.mean(row)), 0.1 + 0.9 * scale)

    def decode(self, points: Tensor, features: Tensor, path: Tensor) -> Tensor:  # -> (S, B, C)
        """Logits of every feature row at every point (S, L) of the latent space."""
        shape = len(points), len(features), -1
        parts = [points[:, None].expand(shape), features[None].expand(shape), path.expand(shape)]
        logits: Tensor = self.classifier(self.decoder(torch.cat(parts, dim=2)))
        return widen(logits)

    def recall(self, features: Tensor, draws: Tensor) -> Tensor:  # -> (S, B, C)
        """Logits of features without labels, with the memory as context."""
        points = self.gaussian(self.latent_bank.mean()).sample(draws)
        return self.decode(points, features, self.deterministic_bank.mean())

    def remember(self, path: Tensor, latents: Sequence[Tensor], chosen: Sequence[Tensor]) -> None:
        gather = distributed.gather
        self.deterministic_bank.write(gather(path.detach()))
        rows = torch.cat([gather(latent.detach()) for latent in latents])
        self.latent_bank.write(rows, torch.cat([gather(one) for one in chosen]))


def layers(*widths: int, active: bool = False) -> nn.Sequential:
    """Linear layers with an activation between them, and after the last one if `active`."""
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        linear = nn.Linear(inputs, outputs)
        nn.init.xavier_normal_(linear.weight)
        nn.init.zeros_(linear.bias)
        parts += [linear, nn.LeakyReLU(SLOPE)]
    return nn.Sequential(*parts[: len(parts) if active else -1])


class NPMatchHeads(NamedTuple):
    """Sampled logits of two views, labels of the weak view, and two Gaussians."""

    labeled: Tensor  # (S, L, C)
    strong: Tensor  # (S, U, C)
    probs: Tensor  # (U, C), aligned, of the weak view
    weight: Tensor  # (U,)
    context: Gaussian  # of the labeled images
    target: Gaussian  # of the selected images


class ProcessDivergence(nn.Module):
    """Divergence between the Gaussians of labeled and of selected images.

    It is skewed toward the more certain of the two.
    """

    def __init__(self, coefficient: float) -> None:
        super().__init__()
        self.coefficient = coefficient

    def forward(self, step: Step[NPMatchHeads]) -> Objective:
        heads, weight = step.passes.heads, step.pseudo.weight
        with torch.no_grad():
            count = distributed.total(weight.sum())
            context = distributed.mean(entropies(log_mean(heads.labeled).exp()).mean())
            target = (entropies(log_mean(heads.strong).exp()) * weight).sum()
            target = distributed.total(target) / count.clamp(min=1)
            skew = context / (context + target).clamp(min=1e-12)
        loss = skewed_jensen_shannon(
            heads.context.mean,
            heads.context.deviation.square(),
            heads.target.mean,
            heads.target.deviation.square(),
            skew,
        )
        loss = loss * (count > 0)
        return Objective(self.coefficient * loss, {"process_divergence": loss})
