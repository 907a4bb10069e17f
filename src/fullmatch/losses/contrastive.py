"""Losses on embeddings: how similar rows are, and which rows should be similar."""

import torch
from torch import Tensor
from torch.nn import functional as F

from .precision import (
    check_rows,
    check_scalars,
    check_shape,
    check_tensors,
    mean_or_zero,
    widen,
    zero_rows,
)


def inner_products(rows: Tensor, others: Tensor) -> Tensor:  # (N, d), (K, d) -> (N, K)
    """Inner products of all pairs of rows, not in autocast, which rounds to three digits."""
    check_tensors(rows=rows, others=others)
    if rows.ndim != 2 or others.ndim != 2 or rows.shape[1] != others.shape[1]:
        raise ValueError(
            "rows and others must have the shapes (N, d) and (K, d); "
            f"got {tuple(rows.shape)} and {tuple(others.shape)}"
        )
    dtype = torch.promote_types(rows.dtype, others.dtype)
    with torch.autocast(rows.device.type, enabled=False):
        return widen(rows.to(dtype)) @ widen(others.to(dtype)).T


def cosine_distance(rows: Tensor, others: Tensor, weight: Tensor | None = None) -> Tensor:
    """1 - cosine of each pair of rows, weighted, averaged over all rows.

    A row of weight 0 adds exactly 0, even if it is not finite.
    """
    check_rows(rows=rows, others=others)
    if rows.shape != others.shape:
        raise ValueError(
            f"others must have the shape of rows, {tuple(rows.shape)}; got {tuple(others.shape)}"
        )
    if weight is not None:
        check_shape("weight", weight, len(rows))
        rows, others = zero_rows(rows, weight == 0), zero_rows(others, weight == 0)
    distance = 1 - F.cosine_similarity(widen(rows), widen(others), dim=1)
    return mean_or_zero(distance if weight is None else distance * weight)


def label_graph(probs: Tensor, cut: float) -> Tensor:  # (N, C) -> (N, N), rows sum to 1
    """Probability that two images share a class, 1 on the diagonal; 0 if below `cut`."""
    check_rows(probs=probs)
    check_scalars(cut=cut)
    links = inner_products(probs, probs)
    itself = torch.eye(len(probs), dtype=torch.bool, device=probs.device)
    links = links.masked_fill(itself, 1)
    links = links.masked_fill(links < cut, 0)
    return links / links.sum(dim=1, keepdim=True)
