"""A neural process as a classifier: a set of labeled features says how to read other features."""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.algorithms.banks import Bank
from fullmatch.algorithms.pseudo_labeling import Step
from fullmatch.algorithms.sampling import entropies, log_mean
from fullmatch.core import Objective
from fullmatch.losses import skewed_jensen_shannon

SLOPE = 0.1


class Gaussian(NamedTuple):
    """Of a whole set, not of each image in it."""

    mean: Tensor  # (L,)
    deviation: Tensor  # (L,)

    def sample(self, draws: Tensor) -> Tensor:  # (S, L) standard normal -> (S, L)
        return self.mean + self.deviation * draws


class NeuralProcess(nn.Module):
    """Two encoders of labeled features, a Gaussian over their mean, and a decoder.

    Away from training both means come from memory, which holds what the encoders last said.
    """

    draws: Tensor  # (S, L), those of prediction

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
        """In one call, since compiled code does not keep the order of several."""
        return torch.randn((times, *self.draws.shape), device=self.draws.device).unbind()

    def latent(self, features: Tensor, labels: Tensor) -> Tensor:  # (B, D), (B, C) -> (B, L)
        rows: Tensor = self.latent_path(torch.cat([features, labels], dim=1))
        return rows.float()

    def deterministic(self, features: Tensor, labels: Tensor) -> Tensor:  # -> (B, L)
        rows: Tensor = self.deterministic_path(torch.cat([features, labels], dim=1))
        return rows.float()

    def gaussian(self, row: Tensor) -> Gaussian:
        scale = F.softplus(self.scale(row).float())
        return Gaussian(self.mean(row).float(), 0.1 + 0.9 * scale)

    def decode(self, points: Tensor, features: Tensor, path: Tensor) -> Tensor:  # -> (S, B, C)
        """Logits of every feature row at every point (S, L) of the latent space."""
        shape = len(points), len(features), -1
        parts = [points[:, None].expand(shape), features[None].expand(shape), path.expand(shape)]
        logits: Tensor = self.classifier(self.decoder(torch.cat(parts, dim=2)))
        return logits.float()

    def recall(self, features: Tensor, draws: Tensor) -> Tensor:  # -> (S, B, C)
        """Logits by what the memory holds, for features whose labels nobody knows."""
        points = self.gaussian(self.latent_bank.mean()).sample(draws)
        return self.decode(points, features, self.deterministic_bank.mean())

    def remember(self, path: Tensor, latent: Tensor, chosen: Tensor) -> None:
        self.deterministic_bank.write(path)
        self.latent_bank.write(latent, chosen)


def layers(*widths: int, active: bool = False) -> nn.Sequential:
    """Linear layers with an activation between them, and after the last one if `active`."""
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        linear = nn.Linear(inputs, outputs)
        nn.init.xavier_normal_(linear.weight)
        nn.init.zeros_(linear.bias)
        parts += [linear, nn.LeakyReLU(SLOPE)]
    return nn.Sequential(*parts[: len(parts) if active else -1])


class Sampled(NamedTuple):
    """What NP-Match makes of its views: samples (S, B, C), weak labels, and two Gaussians."""

    labeled: Tensor
    strong: Tensor
    probs: Tensor  # (U, C), aligned
    weight: Tensor  # (U,)
    context_mean: Tensor
    context_deviation: Tensor
    target_mean: Tensor
    target_deviation: Tensor


class ProcessDivergence(nn.Module):
    """Between the Gaussians of labeled and selected images, leaning to the more certain ones."""

    def __init__(self, coefficient: float) -> None:
        super().__init__()
        self.coefficient = coefficient

    def forward(self, step: Step) -> Objective:
        sampled, weight = Sampled(*step.passes.heads), step.pseudo.weight
        with torch.no_grad():
            context = entropies(log_mean(sampled.labeled).exp()).mean()
            target = (entropies(log_mean(sampled.strong).exp()) * weight).sum()
            target = target / weight.sum().clamp(min=1)
            skew = context / (context + target).clamp(min=1e-12)
        loss = skewed_jensen_shannon(
            sampled.context_mean,
            sampled.context_deviation.square(),
            sampled.target_mean,
            sampled.target_deviation.square(),
            skew,
        )
        loss = loss * (weight.sum() > 0)
        return Objective(self.coefficient * loss, {"process_divergence": loss})
