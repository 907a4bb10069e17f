"""NP-Match (Wang et al., ICML 2022): a neural process predicts labels and their uncertainty.

The head is the classifier: `predict` uses it, and the network's own linear layer stays unused. The
latent memory stores labeled and selected rows, the deterministic memory each labeled row once (the
authors append it twice). Prediction uses fixed draws, so that its results can be repeated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.alignment import align_to_uniform
from fullmatch.algorithms.flexmatch import FlexMatch
from fullmatch.algorithms.neural_process import NeuralProcess, NPMatchHeads, ProcessDivergence
from fullmatch.algorithms.pseudo_labeling import (
    ExtendedPseudoLabeling,
    Passes,
    PseudoLabeling,
    PseudoLabels,
)
from fullmatch.algorithms.sampling import (
    LowEntropyCurriculum,
    entropies,
    log_mean,
    sampled_cross_entropy,
)
from fullmatch.config.limits import Amount, Count, Positive
from fullmatch.core import About, Batch, Network, Output, Task


class ProcessLabeler(nn.Module):
    """Hard labels that the neural process has already computed."""

    def forward(self, passes: Passes[NPMatchHeads], batch: Batch, progress: Tensor) -> PseudoLabels:
        heads = passes.heads
        label = heads.probs.argmax(dim=1)
        return PseudoLabels(heads.probs, label, label, heads.weight)


class NPMatchLoss(ExtendedPseudoLabeling):
    """The neural process labels the unlabeled images and is trained along with the network."""

    clips_separately = True

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
        self.curriculum = LowEntropyCurriculum(
            spec.threshold, task, warmup=spec.warmup, uncertainty=spec.uncertainty
        )

    def passes(
        self, student: Network, batch: Batch, teacher: Network | None = None
    ) -> Passes[NPMatchHeads]:
        passes, process = super().passes(student, batch, teacher), self.process
        labeled, strong = passes.labeled.features, passes.strong[0].features
        # Detached rather than run without gradient, as in `HeadedPseudoLabeling`.
        draws = process.draw(3)
        recalled = process.recall(passes.weak.features.detach(), draws[0])
        with torch.no_grad():
            mean = log_mean(recalled).exp()
            probs = align_to_uniform(mean, distributed.mean(mean.mean(dim=0)))
            weight = self.curriculum.select(probs, batch.unlabeled_index, entropies(mean))
        truth = F.one_hot(batch.labels, self.num_classes).to(torch.get_default_dtype())
        label = F.one_hot(probs.argmax(dim=1), self.num_classes).to(truth.dtype)
        labeled_latent = process.latent(labeled, truth)
        strong_latent = process.latent(strong, label)
        path = process.deterministic(labeled, truth)
        context = process.gaussian(distributed.mean(labeled_latent.mean(dim=0)))
        # If nothing is selected, the labeled rows only keep the values finite; nothing is learned.
        total = distributed.total(weight.sum())
        selected = distributed.total((strong_latent * weight[:, None]).sum(dim=0))
        selected = selected / total.clamp(min=1)
        labeled_mean = distributed.mean(labeled_latent.mean(dim=0))
        target = process.gaussian(torch.where(total > 0, selected, labeled_mean))
        memory = distributed.mean(path.mean(dim=0))
        labeled_samples = process.decode(context.sample(draws[1]), labeled, memory)
        strong_samples = process.decode(target.sample(draws[2]), strong, memory)
        chosen = (truth[:, 0] >= 0, weight > 0)
        process.remember(path, (labeled_latent, strong_latent), chosen)
        return Passes(
            Output(log_mean(labeled_samples), labeled),
            Output(mean.log(), passes.weak.features),
            (Output(log_mean(strong_samples), strong),),
            NPMatchHeads(labeled_samples, strong_samples, probs, weight, context, target),
        )

    def supervised(self, passes: Passes[NPMatchHeads], batch: Batch, progress: Tensor) -> Tensor:
        return sampled_cross_entropy(passes.heads.labeled, batch.labels)

    def consistency(self, passes: Passes[NPMatchHeads], pseudo: PseudoLabels) -> Tensor:
        """Averaged over the selected images only, unlike the rest of the family."""
        mean = sampled_cross_entropy(passes.heads.strong, pseudo.target, pseudo.weight)
        selected = distributed.mean(pseudo.weight.sum())
        return mean * len(pseudo.weight) / selected.clamp(min=1 / distributed.world_size())

    def predict(self, network: Network, images: Tensor) -> Tensor:
        """The softmax of the mean logits, whose largest class is the authors' prediction."""
        samples = self.process.recall(network(images).features, self.process.draws)
        return samples.mean(dim=0).softmax(dim=1)


@dataclass(frozen=True, kw_only=True)
class NPMatch(FlexMatch):
    """FlexMatch with a neural process in place of the linear classifier."""

    about: ClassVar[About] = About(
        "NP-Match", 2022, "a neural process labels with certainty", "two banks, one label per image"
    )
    recipe: ClassVar[Mapping[str, float]] = {"clip": 3.0, "cosine": 63 / 128}

    samples: Count = 10
    uncertainty: Amount = 0.4  # largest entropy of a selected image
    divergence: Amount = 0.01  # weight of the Gaussians' divergence
    latent: Positive = 0.25  # width of the latent space, relative to the features
    memory: Count = 2560  # rows of each bank

    def labeler(self, task: Task) -> nn.Module:
        return ProcessLabeler()

    def extras(self, task: Task) -> Sequence[nn.Module]:
        return (ProcessDivergence(self.divergence),)

    def build(self, task: Task) -> NPMatchLoss:
        return NPMatchLoss(super().build(task), task, self)
