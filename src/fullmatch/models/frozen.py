"""A pretrained network with a frozen body: features of pictures, and a small head on top.

Features are pooled at several picture sizes and averaged. Beside them go the probabilities that the
network's own ImageNet classifier gives, where it has one: they tell classes apart that ImageNet
knows. If ImageNet has a class of every class's name, the probabilities of those are one more part.
All parts are centered and reduced on the user's pictures, which helps with few labels.
"""

import copy
import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.core import Network

DIMENSIONS = 128  # that features and probabilities are each reduced to
SMALLEST = 1e-30  # probability whose logarithm is taken
ROOT = 1e-3  # added below a square root, whose slope at 0 would have no limit


class FrozenBody(nn.Module):
    """Normalized images in, descriptors out: pooled features, then ImageNet probabilities.

    Descriptors are square roots with length 1: their dot products compare pictures better than
    those of the values themselves. Values below 0 keep their sign.
    """

    named: Tensor | None  # (ImageNet classes, C) ones where an ImageNet class has a class's name

    def __init__(
        self,
        body: nn.Module,
        classifier: nn.Linear | None,
        sizes: Sequence[int],
        named: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.body, self.classifier = body, classifier
        self.sizes = tuple(sizes)  # sides that images are resized to
        self.register_buffer("named", named)
        self.requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> "FrozenBody":
        """Batch-norm statistics stay those of the published weights."""
        return super().train(False)

    def forward(self, images: Tensor) -> Tensor:
        """(B, channels, H, W) -> (B, D), the mean over the sizes."""
        return torch.stack([self.describe(images, size) for size in self.sizes]).mean(dim=0)

    def describe(self, images: Tensor, size: int) -> Tensor:
        """The descriptor at one size."""
        if images.shape[1] == 1:
            images = images.expand(-1, 3, -1, -1)
        features: Tensor = self.body(resize(images, size))
        if features.dim() == 4:
            features = features.mean(dim=(2, 3))
        parts = [unit_length(features / (features.abs() + ROOT).sqrt())]
        if self.classifier is not None:
            scores: Tensor = self.classifier(features)
            parts.append((scores.log_softmax(dim=1) / 2).exp())  # the root of the probabilities
            if self.named is not None:
                shares = (scores.softmax(dim=1) @ self.named).clamp(min=SMALLEST)
                parts.append((shares.log().log_softmax(dim=1) / 2).exp())
        return torch.cat(parts, dim=1)


class Embedding(nn.Module):
    """Centers and reduces each part of a descriptor, by statistics of the user's pictures."""

    mean: Tensor  # (D,)

    def __init__(self, widths: Sequence[int], dimensions: Sequence[int]) -> None:
        super().__init__()
        self.widths = tuple(widths)  # of the parts of a descriptor
        self.register_buffer("mean", torch.zeros(sum(widths)))
        for number, (width, reduced) in enumerate(zip(widths, dimensions, strict=True)):
            self.register_buffer(f"basis_{number}", torch.zeros(width, reduced))

    @property
    def bases(self) -> list[Tensor]:
        return [getattr(self, f"basis_{number}") for number in range(len(self.widths))]

    @property
    def dimensions(self) -> tuple[int, ...]:
        return tuple(basis.shape[1] for basis in self.bases)

    def forward(self, descriptors: Tensor) -> Tensor:
        """(B, D) -> (B, sum of dimensions); every part has length 1."""
        parts = (descriptors - self.mean).split_with_sizes(list(self.widths), dim=1)
        pairs = zip(parts, self.bases, strict=True)
        return torch.cat([unit_length(unit_length(part) @ basis) for part, basis in pairs], dim=1)

    @classmethod
    @torch.no_grad()
    def fit(cls, descriptors: Tensor, widths: Sequence[int]) -> "Embedding":
        """Means and principal directions of descriptors (N, D); not whitened, which would hurt."""
        reduced = [max(2, min(DIMENSIONS, width, len(descriptors) // 2)) for width in widths]
        embedding = cls(widths, reduced)
        embedding.mean.copy_(descriptors.mean(dim=0))
        parts = (descriptors - embedding.mean).split_with_sizes(list(widths), dim=1)
        for part, basis in zip(parts, embedding.bases, strict=True):
            basis.copy_(principal_directions(unit_length(part), basis.shape[1]))
        return embedding


class FrozenNetwork(Network):
    """A frozen body, an embedding and a linear head; only the head is trained."""

    def __init__(self, body: FrozenBody, embedding: Embedding, num_classes: int) -> None:
        super().__init__()
        self.body, self.embedding = body, embedding
        self.head = nn.Linear(sum(embedding.dimensions), num_classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def feature_map(self, images: Tensor) -> Tensor:
        """Images, or embeddings that were computed before, (B, D, 1, 1)."""
        if images.shape[1] == self.head.in_features:
            return images
        with torch.no_grad():
            embedded: Tensor = self.embedding(self.body(images))
            return embedded[:, :, None, None]

    def classify(self, features: Tensor) -> Tensor:
        logits: Tensor = self.head(features)
        return logits


class TunedNetwork(FrozenNetwork):
    """The same network, all of it trained; before the first step it predicts the same.

    Batch-norm statistics stay those of the published weights: a few labels say little about them.
    """

    def __init__(self, body: FrozenBody, embedding: Embedding, num_classes: int) -> None:
        super().__init__(body, embedding, num_classes)
        self.requires_grad_(True)

    def feature_map(self, images: Tensor) -> Tensor:
        """Training sees images at one size, which takes a third of the time."""
        body = self.body
        middle = body.sizes[len(body.sizes) // 2]
        described = body.describe(images, middle) if self.training else body(images)
        embedded: Tensor = self.embedding(described)
        return embedded[:, :, None, None]


class HeadNetwork(Network):
    """Only the head, on embeddings (B, D, 1, 1): all that training changes."""

    def __init__(self, features: int, num_classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(features, num_classes)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def feature_map(self, images: Tensor) -> Tensor:
        return images

    def classify(self, features: Tensor) -> Tensor:
        logits: Tensor = self.head(features)
        return logits


def resize(images: Tensor, size: int) -> Tensor:
    """Without antialiasing where pictures grow, with averaging where they shrink by much."""
    side = images.shape[2]
    if (side, images.shape[3]) == (size, size):
        return images
    if side >= 2 * size:  # else every second pixel would be skipped
        factor = side // size
        images = F.avg_pool2d(images, (factor, min(factor, images.shape[3])))
    return F.interpolate(images, (size, size), mode="bilinear", align_corners=False)


def unit_length(rows: Tensor) -> Tensor:
    return F.normalize(rows, dim=1, eps=1e-6)


def principal_directions(rows: Tensor, count: int) -> Tensor:
    """(D, count) directions of largest variance, by a randomized method with a fixed seed."""
    generator = torch.Generator().manual_seed(0)
    basis = torch.randn(rows.shape[1], count + 20, generator=generator)[:, : rows.shape[1]]
    for _ in range(4):
        basis, _ = torch.linalg.qr(rows.T @ (rows @ basis))
    _, _, rotation = torch.linalg.svd(rows @ basis, full_matrices=False)
    directions: Tensor = (basis @ rotation.T)[:, :count]
    return directions


@torch.no_grad()
def fold_batch_norms(body: FrozenBody, image: tuple[int, int, int]) -> FrozenBody:
    """A copy whose batch norms are part of the convolutions before them: twice as fast on a CPU.

    Which norm follows which convolution is guessed from their order, then checked on noise; the
    body itself is returned where the guess is wrong.
    """
    folded = copy.deepcopy(body)
    for parent in folded.modules():
        children = list(parent.named_children())
        for (_, first), (name, second) in itertools.pairwise(children):
            if not (isinstance(first, nn.Conv2d) and isinstance(second, nn.BatchNorm2d)):
                continue
            complete = second.affine and second.running_mean is not None
            if complete and first.out_channels == second.num_features:
                fold_pair(first, second)
                # timm's batch norms bring their activation along.
                setattr(parent, name, getattr(second, "act", nn.Identity()))
    noise = torch.randn(2, *image, generator=torch.Generator().manual_seed(0))
    same = torch.allclose(folded(noise), body(noise), atol=1e-4)
    return folded.to(memory_format=torch.channels_last) if same else body


def fold_pair(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    assert norm.running_mean is not None and norm.running_var is not None
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    bias = 0 if convolution.bias is None else convolution.bias
    convolution.weight = nn.Parameter(
        convolution.weight * scale[:, None, None, None], requires_grad=False
    )
    convolution.bias = nn.Parameter(
        norm.bias + (bias - norm.running_mean) * scale, requires_grad=False
    )
