"""NP-Match (Wang et al., ICML 2022): a neural process labels, and says how certain it is.

The head is the classifier: `predict` goes through it, and the network's own linear layer is never
used. The latent memory takes labeled and selected rows, the deterministic one each labeled row
once (the authors append it twice). Predicting uses fixed draws, so that it repeats itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.about import About
from fullmatch.algorithms.alignment import evened
from fullmatch.algorithms.flexmatch import FlexMatch
from fullmatch.algorithms.neural_process import NeuralProcess, ProcessDivergence, Sampled
from fullmatch.algorithms.pseudo_labeling import Member, Passes, PseudoLabeling, PseudoLabels
from fullmatch.algorithms.sampling import (
    CertainCurriculum,
    entropies,
    log_mean,
    sampled_cross_entropy,
)
from fullmatch.config.limits import Amount, Count, Positive
from fullmatch.core import Batch, Network, Output, Task


class SampledLabeler(nn.Module):
    """Hard labels that the process has already made."""

    def forward(self, passes: Passes, batch: Batch, progress: Tensor) -> PseudoLabels:
        sampled = Sampled(*passes.heads)
        label = sampled.probs.argmax(dim=1)
        return PseudoLabels(sampled.probs, label, label, sampled.weight)


class NPMatchLoss(Member):
    def __init__(self, plain: PseudoLabeling, task: Task, spec: "NPMatch") -> None:
        super().__init__(plain)
        self.num_classes = task.num_classes
        self.process = NeuralProcess(
            task.features,
            task.num_classes,
            latent=spec.latent,
            samples=spec.samples,
            rows=spec.memory,
        )
        self.curriculum = CertainCurriculum(
            spec.threshold, task, warmup=spec.warmup, uncertainty=spec.uncertainty
        )

    def passes(self, student: Network, batch: Batch) -> Passes:
        passes, process = super().passes(student, batch), self.process
        labeled, strong = passes.labeled.features, passes.strong[0].features
        # Detached rather than run without gradient, as in `Headed`.
        draws = process.draw(3)
        recalled = process.recall(passes.weak.features.detach(), draws[0])
        with torch.no_grad():
            mean = log_mean(recalled).exp()
            probs = evened(mean, distributed.mean(mean.mean(dim=0)))
            weight = self.curriculum.select(probs, batch.unlabeled_index, entropies(mean))
        truth = F.one_hot(batch.labels, self.num_classes).float()
        guess = F.one_hot(probs.argmax(dim=1), self.num_classes).float()
        known, guessed = process.latent(labeled, truth), process.latent(strong, guess)
        path = process.deterministic(labeled, truth)
        context = process.gaussian(known.mean(dim=0))
        # Where nothing is selected nothing is learned: the labeled rows only keep it finite.
        total = weight.sum()
        chosen = (guessed * weight[:, None]).sum(dim=0) / total.clamp(min=1)
        target = process.gaussian(torch.where(total > 0, chosen, known.mean(dim=0)))
        memory = path.mean(dim=0)
        certain = process.decode(context.sample(draws[1]), labeled, memory)
        guesses = process.decode(target.sample(draws[2]), strong, memory)
        process.remember(
            path, torch.cat([known, guessed]), torch.cat([truth[:, 0] >= 0, weight > 0])
        )
        return Passes(
            Output(log_mean(certain), labeled),
            Output(mean.log(), passes.weak.features),
            (Output(log_mean(guesses), strong),),
            Sampled(certain, guesses, probs, weight, *context, *target),
        )

    def supervised(self, passes: Passes, batch: Batch, progress: Tensor) -> Tensor:
        return sampled_cross_entropy(Sampled(*passes.heads).labeled, batch.labels)

    def consistency(self, passes: Passes, pseudo: PseudoLabels) -> Tensor:
        """Averaged over the selected images alone, unlike the rest of the family."""
        mean = sampled_cross_entropy(Sampled(*passes.heads).strong, pseudo.target, pseudo.weight)
        return mean * len(pseudo.weight) / pseudo.weight.sum().clamp(min=1)

    def predict(self, network: Network, images: Tensor) -> Tensor:
        samples = self.process.recall(network(images).features, self.process.draws)
        return log_mean(samples).exp()


@dataclass(frozen=True, kw_only=True)
class NPMatch(FlexMatch):
    about: ClassVar[About] = About(
        "NP-Match", 2022, "a neural process labels with certainty", "two banks, a label an image"
    )
    recipe: ClassVar[Mapping[str, float]] = {"clip": 3.0, "cosine": 63 / 128}

    samples: Count = 10
    uncertainty: Amount = 0.4  # largest entropy of a selected image; 1.2 on ImageNet
    divergence: Amount = 0.01  # weight of the Gaussians' divergence
    latent: Positive = 0.25  # width of the latent space by that of the features
    memory: Count = 2560

    def labeler(self, task: Task) -> nn.Module:
        return SampledLabeler()

    def extras(self, task: Task) -> Sequence[nn.Module]:
        return (ProcessDivergence(self.divergence),)

    def build(self, task: Task) -> NPMatchLoss:
        return NPMatchLoss(super().build(task), task, self)
