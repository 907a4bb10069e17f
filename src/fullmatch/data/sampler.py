"""Which images each step reads: a function of seed and step, the same on every device."""

import math

import torch
from torch import Tensor

BLOCK = 256  # steps whose order is computed together, because shuffling per step is slow


class Sampler:
    """Shuffled epochs cut into full batches; no image occurs twice in a batch.

    A set that is smaller than a batch makes the batch shrink, or, with `repeat`, its images occur
    several times: the epochs are joined and then cut, as TorchSSL does.

    `seek` is called by the host before a step, `positions` inside it. `positions` reads only
    tensors that are written in place, so a recorded step replays with the new order.
    """

    def __init__(
        self,
        size: int,
        batch: int,
        *,
        seed: int,
        stream: int,
        device: torch.device,
        rank: int = 0,
        world_size: int = 1,
        repeat: bool = False,
    ) -> None:
        self.size, self.requested_batch = size, batch
        self.seed, self.stream, self.device = seed, stream, device
        if repeat and size < batch:
            # The fewest whole epochs that are also whole batches.
            self.batch, self.used = batch, size
            steps, epochs = size // math.gcd(size, batch), batch // math.gcd(size, batch)
        else:
            self.batch = min(batch, size)
            steps, epochs = size // self.batch, 1
            self.used = steps * self.batch  # images of an epoch
        # Read by this process. The order of a batch does not depend on how many share it, and its
        # first images are spread evenly too.
        self.own_part = slice(rank, None, world_size)
        times = -(-BLOCK // steps)
        self.epochs = times * epochs
        self.block = -1
        self.order = torch.empty(times * steps, self.batch, dtype=torch.int64, device=device)
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)

    def seek(self, step: int) -> None:
        block, row = divmod(step, len(self.order))
        if block != self.block:
            first = block * self.epochs
            shuffled = permutations(
                self.size, range(first, first + self.epochs), self.seed, self.stream, self.device
            )
            self.order.copy_(shuffled[:, : self.used].reshape(self.order.shape))
            self.block = block
        self.cursor.fill_(row)

    def positions(self) -> Tensor:
        return self.order.index_select(0, self.cursor)[0, self.own_part]


def permutations(size: int, epochs: range, seed: int, stream: int, device: torch.device) -> Tensor:
    """(epochs, size): one permutation per epoch, by sorting hashes, so that devices agree."""
    start = torch.full((), seed, dtype=torch.int64, device=device)  # no copy from the host
    epoch = torch.arange(epochs.start, epochs.stop, device=device)[:, None]
    item = torch.arange(size, device=device)[None, :]
    key = scramble(scramble(scramble(scramble(start) + epoch) + stream) + item)
    return key.argsort(dim=1, stable=True)


def scramble(x: Tensor) -> Tensor:
    """A bijection of int64 whose bits look random (two rounds of multiply and shift)."""
    for multiplier in (-0x61C8864680B583EB, -0x3B314601E57A13AD):
        x = x * multiplier  # overflow is intended
        x = x ^ ((x >> 32) & 0xFFFFFFFF)
    return x
