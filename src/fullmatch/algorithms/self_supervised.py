"""SimCLR (Chen et al., ICML 2020) as a start: two strong views of an image find each other."""

import torch
from torch import Tensor
from torch.nn import functional as F

from fullmatch import distributed
from fullmatch.algorithms.heads import Projection
from fullmatch.algorithms.passes import run_jointly
from fullmatch.core import Algorithm, Batch, Network, Objective, Task, Views
from fullmatch.errors import UserError
from fullmatch.losses import inner_products

WIDTH = 128  # of the embeddings
TEMPERATURE = 0.2


class FindOtherView(Algorithm):
    """Classifies which of all other views in the batch shows the same image; needs no label."""

    views = Views(labeled=(), unlabeled=("strong", "strong"))

    def __init__(self, task: Task) -> None:
        super().__init__()
        if task.image[1:] == (1, 1):
            raise UserError(
                "training.self_supervised trains on pictures, not on the features of a frozen "
                "body; set it to 0, or model.body to trained"
            )
        self.head = Projection(task.features, WIDTH)

    def forward(
        self, student: Network, teacher: Network, batch: Batch, progress: Tensor
    ) -> Objective:
        outputs = run_jointly(student, batch.unlabeled)
        rows = self.head(torch.cat([output.features for output in outputs]))
        views = rows.chunk(2)
        every = torch.cat([distributed.gather(view) for view in views])  # of all processes
        similarity = inner_products(rows, every) / TEMPERATURE
        place = torch.arange(len(every), device=rows.device)
        itself = distributed.own_rows(place, groups=2)[:, None] == place
        similarity = similarity.masked_fill(itself, -torch.inf)
        other = distributed.own_rows(place.roll(len(every) // 2), groups=2)
        loss = F.cross_entropy(similarity, other)
        return Objective(loss, {"view_found": (similarity.argmax(dim=1) == other).float().mean()})
