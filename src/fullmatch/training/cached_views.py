"""Views that were computed before training: embeddings of a frozen body, drawn at random."""

import torch
from torch import Tensor, nn

from fullmatch import distributed
from fullmatch.core import Batch, Views
from fullmatch.data.feed import RawBatch


class CachedViews(nn.Module):
    """Takes the place of `Augmentation`: a stored image is (V, 1, D), one embedding per view."""

    def __init__(self, views: Views, columns: dict[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.views, self.columns = views, columns  # which of the V views serve under each name

    def draw(self, raw: RawBatch) -> tuple[Tensor, ...]:
        """The random numbers of every view, in their order, for the images of all processes."""
        processes, rank = distributed.world_size(), distributed.rank()
        counts = [len(raw.labeled)] * len(self.views.labeled)
        counts += [len(raw.unlabeled)] * len(self.views.unlabeled)
        device = raw.labels.device
        return tuple(
            torch.rand(processes * count, device=device)[rank::processes] for count in counts
        )

    @torch.no_grad()
    def forward(self, raw: RawBatch, chances: tuple[Tensor, ...] | None = None) -> Batch:
        every = iter(self.draw(raw) if chances is None else chances)
        return Batch(
            tuple(self.view(raw.labeled, view, next(every)) for view in self.views.labeled),
            raw.labels,
            raw.labeled_index,
            tuple(self.view(raw.unlabeled, view, next(every)) for view in self.views.unlabeled),
            raw.unlabeled_index,
            raw.hidden_labels,
        )

    def view(self, rows: Tensor, name: str, chance: Tensor) -> Tensor:
        """(B, V, 1, D) -> (B, D, 1, 1): one of the views of this name for each image."""
        columns = torch.tensor(self.columns[name], device=rows.device)
        choice = columns[(chance * len(columns)).long()]
        picked = rows[torch.arange(len(rows), device=rows.device), choice, 0]
        return picked.float()[:, :, None, None]
