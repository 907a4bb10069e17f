"""Small networks that a method trains on the features of its views, beside the classifier."""

from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.algorithms.pseudo_labeling import Member, Passes, PseudoLabeling, PseudoLabels
from fullmatch.core import Batch, Network


def perceptron(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two linear layers around a ReLU."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Projection(nn.Module):
    """Features as unit vectors of another width, whose inner products are cosines."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.layers = perceptron(features, features, width)

    def forward(self, features: Tensor) -> Tensor:
        return F.normalize(self.layers(features).float(), dim=1)


class Headed(Member):
    """The family's module with one head over the features of every view."""

    def __init__(self, plain: PseudoLabeling, head: nn.Module) -> None:
        super().__init__(plain)
        self.head = head

    def passes(self, student: Network, batch: Batch) -> Passes:
        """`heads` holds the head's labeled, weak and strong rows; the weak ones only teach."""
        passes = super().passes(student, batch)
        # Detached rather than run without gradient: older versions of autocast keep the weights
        # that they cast there, cut off from their gradient, for the other views.
        weak = self.head(passes.weak.features.detach()).detach()
        strong = [self.head(output.features) for output in passes.strong]
        return passes._replace(heads=(self.head(passes.labeled.features), weak, *strong))


class GivenLabeler(nn.Module):
    """Soft labels that the method's own memory has already made: the first of `heads`."""

    def __init__(self, weighting: nn.Module) -> None:
        super().__init__()
        self.weighting = weighting

    def forward(self, passes: Passes, batch: Batch, progress: Tensor) -> PseudoLabels:
        probs = passes.heads[0]
        return PseudoLabels(
            probs, probs.argmax(dim=1), probs, self.weighting(probs, batch.unlabeled_index)
        )
