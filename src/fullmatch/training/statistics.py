"""Running statistics of a new network, measured before its first step."""

import torch
from torch import Tensor, nn

from fullmatch.core import Network


@torch.no_grad()
def measure_statistics(network: Network, images: Tensor) -> None:
    """Set the running statistics to those of some images.

    A teacher that labels from the first step on would otherwise normalize nothing, and be sure of
    labels that mean nothing.
    """
    norms = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    network.train()
    for norm in norms:
        norm.momentum = 1.0
    network(images)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
