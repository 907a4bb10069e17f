"""Small networks that a method trains on the features of its views, next to the classifier."""

from typing import NamedTuple, Protocol

from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.algorithms.pseudo_labeling import (
    ExtendedPseudoLabeling,
    Passes,
    PseudoLabeling,
    PseudoLabels,
)
from fullmatch.core import Batch


def perceptron(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two linear layers with a ReLU between them."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Projection(nn.Module):
    """Maps features to unit vectors of another width, whose inner products are cosines."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.layers = perceptron(features, features, width)

    def forward(self, features: Tensor) -> Tensor:
        return F.normalize(self.layers(features).float(), dim=1)


class Embeddings(NamedTuple):
    """What one head makes of the features of every view."""

    labeled: Tensor
    weak: Tensor  # without gradient
    strong: tuple[Tensor, ...]


class HeadedPseudoLabeling(ExtendedPseudoLabeling):
    """The family's module with one head for the features of every view."""

    def __init__(self, plain: PseudoLabeling, head: nn.Module) -> None:
        super().__init__(plain)
        self.head = head

    def embed(self, passes: Passes[object]) -> Embeddings:
        # Detached rather than run without gradient: older versions of autocast would cache the
        # cast weights without their gradient and reuse them for the other views.
        weak = self.head(passes.weak.features.detach()).detach()
        strong = [self.head(output.features) for output in passes.strong]
        return Embeddings(self.head(passes.labeled.features), weak, tuple(strong))


class HasProbs(Protocol):
    """Head outputs that include labels."""

    @property
    def probs(self) -> Tensor: ...  # (U, C)


class PrecomputedLabeler(nn.Module):
    """Soft labels that the method's heads have already computed."""

    def __init__(self, weighting: nn.Module) -> None:
        super().__init__()
        self.weighting = weighting

    def forward(self, passes: Passes[HasProbs], batch: Batch, progress: Tensor) -> PseudoLabels:
        probs = passes.heads.probs
        return PseudoLabels(
            probs, probs.argmax(dim=1), probs, self.weighting(probs, batch.unlabeled_index)
        )
