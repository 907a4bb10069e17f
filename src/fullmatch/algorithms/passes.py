"""How an algorithm runs a network over its views: all at once, or one view separately."""

from collections.abc import Sequence

import torch
from torch import Tensor

from fullmatch.core import Network, Output


def run_jointly(network: Network, views: Sequence[Tensor]) -> tuple[Output, ...]:
    """One pass over all views, which therefore share their batch statistics."""
    sizes = [view.shape[0] for view in views]
    logits, features = network(torch.cat(list(views)))
    parts = zip(logits.split(sizes), features.split(sizes), strict=True)
    return tuple(Output(*part) for part in parts)


def run_separately(network: Network, images: Tensor) -> Output:
    """A pass with its own batch statistics that does not change the running statistics.

    The buffers are cloned before the pass, since restoring the old values after it would break
    the backward pass.
    """
    buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}
    output: Output = torch.func.functional_call(network, buffers, (images,))
    return output


def linear_ramp(progress: Tensor, share: float) -> Tensor:
    """Rises from 0 to 1 over the first `share` of the training; constant 1 if `share` is 0."""
    return (progress / share).clamp(0.0, 1.0) if share > 0 else torch.ones_like(progress)
