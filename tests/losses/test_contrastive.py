"""Embedding losses: the specified graph, and cosines of rows."""

import pytest
import torch

from fullmatch.losses import cosine_distance, inner_products, label_graph
from tests.reference.comatch import graph


def test_graph_of_three_images() -> None:
    probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]], dtype=torch.float64)
    expected = [[0.5747126, 0.4252874, 0], [0.4252874, 0.5747126, 0], [0, 0, 1]]
    actual = label_graph(probs, 0.7)
    torch.testing.assert_close(actual, torch.tensor(expected).double(), rtol=0, atol=1e-7)


def test_graph_agrees_with_loops() -> None:
    torch.manual_seed(0)
    probs = (3 * torch.randn(9, 3)).softmax(dim=1).double()
    torch.testing.assert_close(
        label_graph(probs, 0.5), torch.tensor(graph(list(probs.numpy()), 0.5))
    )


def test_inner_products_stay_exact_under_autocast() -> None:
    rows, others = torch.randn(3, 5), torch.randn(4, 5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = inner_products(rows, others)
    assert torch.equal(actual, rows @ others.T)


def test_inner_products_of_mixed_precision() -> None:
    rows, others = torch.randn(3, 5), torch.randn(4, 5, dtype=torch.float64)
    assert torch.equal(inner_products(rows, others), rows.double() @ others.T)
    assert torch.equal(inner_products(rows, others.half()), rows @ others.half().float().T)


def test_cosine_distance_is_weighted_and_divided_by_all_rows() -> None:
    rows = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    others = torch.tensor([[3.0, 0.0], [0.0, -1.0], [1.0, 0.0]])
    assert float(cosine_distance(rows, others)) == pytest.approx((0 + 2 + 1 - 0.5**0.5) / 3)
    weight = torch.tensor([1.0, 0.5, 0.0])
    assert float(cosine_distance(rows, others, weight)) == pytest.approx(1 / 3)


def test_cosine_distance_names_the_wrong_shape() -> None:
    with pytest.raises(ValueError, match="others"):
        cosine_distance(torch.ones(2, 3), torch.ones(3, 3))
