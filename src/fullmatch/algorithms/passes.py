"""How an algorithm runs a network over its views: all at once, or one view apart from the rest."""

from collections.abc import Sequence

import torch
from torch import Tensor

from fullmatch.core import Network, Output


def joint(network: Network, views: Sequence[Tensor]) -> tuple[Output, ...]:
    """One pass over all views, which therefore share their batch statistics."""
    sizes = [view.shape[0] for view in views]
    logits, features = network(torch.cat(list(views)))
    parts = zip(logits.split(sizes), features.split(sizes), strict=True)
    return tuple(Output(*part) for part in parts)


def apart(network: Network, images: Tensor) -> Output:
    """A pass with batch statistics of its own that leaves the running statistics alone.

    The buffers are cloned beforehand, since writing the old values back after the pass would
    break the backward pass.
    """
    buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}
    output: Output = torch.func.functional_call(network, buffers, (images,))
    return output


def ramp(progress: Tensor, share: float) -> Tensor:
    """Rises linearly from 0 to 1 over the first share of the training; over none, it is 1."""
    return (progress / share).clamp(0.0, 1.0) if share > 0 else torch.ones_like(progress)
