"""How an algorithm runs a network over its views: all at once, or one view separately."""

from collections.abc import Sequence

import torch
from torch import Tensor

from fullmatch import distributed
from fullmatch.augment.mix import MixupDraws, mixup
from fullmatch.core import Network, Output
from fullmatch.errors import UserError


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


def run_interleaved(network: Network, images: Tensor, size: int) -> Tensor:  # -> (B, C) logits
    """A pass per chunk of `size` interleaved images; only the first one moves the statistics."""
    if len(images) % size:
        raise UserError(
            f"algorithm.interleave cuts a batch into chunks of its {size} labeled images, but it "
            f"has {len(images)} images; set training.repeat_labels=true, or another training.batch"
        )
    first, *others = interleave(torch.split(images, size))
    logits = [network(first).logits, *(run_separately(network, chunk).logits for chunk in others)]
    return torch.cat(interleave(logits))


def interleave(chunks: Sequence[Tensor]) -> list[Tensor]:
    """Swap part i of the first chunk with part i of chunk i; a second call swaps them back."""
    count, size = len(chunks), len(chunks[0])
    # The last parts are one longer where the size is not a multiple of the number of chunks.
    sizes = [size // count + (part >= count - size % count) for part in range(count)]
    parts = [list(torch.split(chunk, sizes)) for chunk in chunks]
    for at in range(1, count):
        parts[0][at], parts[at][at] = parts[at][at], parts[0][at]
    return [torch.cat(chunk) for chunk in parts]


def mix_views(
    images: Sequence[Tensor], targets: Sequence[Tensor], draws: MixupDraws
) -> tuple[Tensor, Tensor]:
    """Mixup of all views; `draws` are for the whole batch, so partners may be elsewhere."""
    if distributed.world_size() == 1:
        return mixup(torch.cat(list(images)), torch.cat(list(targets)), draws)
    weight, partners, _ = draws
    sizes = [len(view) * distributed.world_size() for view in images]
    own = torch.cat([distributed.own_rows(part) for part in torch.split(partners, sizes)])
    mixed = [
        weight * torch.cat(list(views))
        + (1 - weight) * torch.cat([distributed.gather(view) for view in views])[own]
        for views in (images, targets)
    ]
    return mixed[0], mixed[1]


def linear_ramp(progress: Tensor, share: float) -> Tensor:
    """Rises from 0 to 1 over the first `share` of the training; constant 1 if `share` is 0."""
    return (progress / share).clamp(0.0, 1.0) if share > 0 else torch.ones_like(progress)
