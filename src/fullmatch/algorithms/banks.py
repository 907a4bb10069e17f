"""A memory of the most recent rows, written in place and equal in every process."""

import torch
from torch import Tensor, nn


class Bank(nn.Module):
    """First in, first out: a new row replaces the oldest one."""

    rows: Tensor  # (size, width)
    written: Tensor  # () int64, total rows written; the next row goes to `written % size`

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(size, width))
        self.register_buffer("written", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def write(self, rows: Tensor, chosen: Tensor | None = None) -> None:
        """Append gathered rows in order, or only those `chosen` (N,) bool."""
        rows = rows.to(self.rows.dtype)
        if chosen is None:
            chosen = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        # In pieces no longer than the bank, so that no place is written twice at once.
        size = len(self.rows)
        for piece, taken in zip(torch.split(rows, size), torch.split(chosen, size), strict=True):
            first = taken.logical_not().sort(stable=True).indices  # chosen rows come first
            steps = torch.arange(len(piece), device=piece.device)
            place = (self.written + steps) % size
            keep = (steps < taken.sum())[:, None]
            self.rows[place] = torch.where(keep, piece[first], self.rows[place])
            self.written += taken.sum()

    def is_full(self) -> Tensor:  # () bool
        return self.written >= len(self.rows)

    def mean(self) -> Tensor:  # (width,)
        """The mean of the rows written so far; zero if there are none."""
        steps = torch.arange(len(self.rows), device=self.rows.device)
        filled = (steps < self.written).float()[:, None]
        return (filled * self.rows).sum(dim=0) / filled.sum().clamp(min=1)
