"""Rows of given features in, their similarities to landmarks out.

Landmarks are some of the user's rows. A linear head on such similarities separates classes that no
plane separates, and with few labels it is as good as one on the features themselves (the Nystrom
method, with a Gaussian kernel).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fullmatch.models.frozen import FrozenBody

LANDMARKS = 500
NEIGHBORS = 10  # whose distance decides the width of the kernel
WIDTH = 4.0  # of the kernel, relative to the mean squared distance of neighbors
UNITS = 100.0  # ratio of deviations above which columns must be in different units
SMALLEST = 1e-4  # eigenvalue of the kernel that counts, relative to the largest


class LandmarkBody(FrozenBody):
    """Takes the place of a pretrained body: rows (B, 1, 1, D) in, descriptors (B, M) out.

    A row is centered, scaled, and given one more column with a constant before it is brought to
    length 1, so that rows of the same direction but another length stay apart.
    """

    mean: Tensor  # (D,), in double precision: features may be far from 0
    scale: Tensor  # (D,)
    landmarks: Tensor  # (M, D + 1), of length 1
    sharpness: Tensor  # of the kernel
    whitening: Tensor  # (M, M): dot products of descriptors are values of the kernel

    def __init__(self, width: int, landmarks: int) -> None:
        super().__init__(nn.Identity(), None, ())
        for name in ("mean", "scale"):
            self.register_buffer(name, torch.zeros(width, dtype=torch.float64))
        self.register_buffer("landmarks", torch.zeros(landmarks, width + 1))
        self.register_buffer("sharpness", torch.zeros(()))
        self.register_buffer("whitening", torch.zeros(landmarks, landmarks))

    def forward(self, images: Tensor) -> Tensor:
        return self.similarities(self.normalize(images.flatten(1))) @ self.whitening

    def normalize(self, rows: Tensor) -> Tensor:
        """(B, D) -> (B, D + 1) rows of length 1."""
        centered = ((rows.to(self.mean.dtype) - self.mean) / self.scale).to(self.landmarks.dtype)
        return F.normalize(F.pad(centered, (0, 1), value=1.0), dim=1)

    def similarities(self, normalized: Tensor) -> Tensor:
        """(B, M), from 0 to 1."""
        return (-self.sharpness * squared_distances(normalized, self.landmarks)).exp()

    @classmethod
    @torch.no_grad()
    def fit(cls, rows: Tensor, landmarks: Tensor) -> "LandmarkBody":
        """Statistics of rows (N, D); `landmarks` are positions of some of them."""
        body = cls(rows.shape[1], len(landmarks))
        wide = rows.to(body.mean.dtype)
        body.mean.copy_(wide.mean(dim=0))
        body.scale.copy_(choose_scale(wide - body.mean))
        chosen = body.normalize(rows[landmarks])
        body.landmarks.copy_(chosen)
        body.sharpness.copy_(1 / (2 * WIDTH * neighbor_distance(chosen)))
        body.whitening.copy_(inverse_root(body.similarities(chosen)))
        return body


def choose_scale(centered: Tensor) -> Tensor:
    """(D,) divisors: rows get a mean squared length of 1.

    Columns are scaled one by one only where they seem to be in different units: rare words of a
    text or faint pixels of a picture would become as loud as the others.
    """
    largest = centered.abs().max()
    if largest == 0:
        return torch.ones_like(centered[0])
    unit = centered / largest  # the square of a very large number would be infinite
    deviation = unit.square().mean(dim=0).sqrt()
    varying = deviation > 0
    scale = torch.ones_like(deviation)
    if deviation.max() > UNITS * deviation[varying].median():
        scale = deviation.where(varying, scale)
    return scale * largest * (unit / scale).square().sum(dim=1).mean().sqrt()


def squared_distances(rows: Tensor, others: Tensor) -> Tensor:
    """(B, M), of rows of length 1."""
    return (2 - 2 * rows @ others.T).clamp(min=0)


def neighbor_distance(rows: Tensor) -> Tensor:
    """The mean squared distance of rows to their nearest neighbors; never 0."""
    count = min(NEIGHBORS, len(rows) - 1)
    nearest = squared_distances(rows, rows).topk(count + 1, dim=1, largest=False).values
    return nearest[:, 1:].mean().clamp(min=1e-6)


def inverse_root(kernel: Tensor) -> Tensor:
    """The matrix whose square is the inverse of a kernel matrix, ignoring small eigenvalues."""
    values, vectors = torch.linalg.eigh(kernel.double())
    roots = values.clamp(min=SMALLEST * float(values.max())).rsqrt()
    root: Tensor = (vectors * roots) @ vectors.T
    return root
