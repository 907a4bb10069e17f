"""What the layers of a network do at once in a pass, rather than by a small kernel each."""

from collections.abc import Iterable

from torch import Tensor, nn

from fullmatch.models.kernels.convolution import left_to_library, round_weights
from fullmatch.models.kernels.device import kernels_for
from fullmatch.models.kernels.normalization_operators import move_statistics


class Pass:
    """One pass of images: weights that were rounded before it, statistics that move after it."""

    def __init__(self, layers: Iterable[nn.Module], x: Tensor) -> None:
        self.found: list[tuple[nn.BatchNorm2d, Tensor]] = []  # what normalisations saw of x
        self.weights: dict[nn.Conv2d, Tensor] = {}
        if kernels_for(x):
            plain = [layer for layer in layers if left_to_library(layer)]
            rounded = round_weights([layer.weight for layer in plain]) if plain else []
            self.weights = dict(zip(plain, rounded, strict=True))

    def convolved(self, conv: nn.Conv2d, x: Tensor) -> Tensor:
        weight = self.weights.get(conv)
        result: Tensor = conv(x) if weight is None else conv._conv_forward(x, weight, conv.bias)
        return result

    def end(self) -> None:
        if self.found:
            layers, found = zip(*self.found, strict=True)
            means, variances = [n.running_mean for n in layers], [n.running_var for n in layers]
            momenta = [layer.momentum for layer in layers]
            move_statistics(means, variances, [one.detach() for one in found], momenta)
