"""Rows of any scale are described by their similarities to landmarks."""

import pytest
import torch
from torch import Tensor

from fullmatch.data.stores.image_store import evenly_spaced
from fullmatch.models.landmarks import (
    UNITS,
    LandmarkBody,
    choose_scale,
    inverse_root,
    neighbor_distance,
)


def rows(count: int = 60, width: int = 5, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, width, generator=generator, dtype=torch.float64)


def fit(data: Tensor, landmarks: int = 20) -> LandmarkBody:
    return LandmarkBody.fit(data, evenly_spaced(len(data), landmarks))


def describe(body: LandmarkBody, data: Tensor) -> Tensor:
    return body(data[:, None, None])


def test_dot_products_are_values_of_the_kernel() -> None:
    data = rows()
    body = fit(data, landmarks=len(data))
    described = describe(body, data)
    normalized = body.normalize(data)
    distances = torch.cdist(normalized, normalized).square()
    expected = (-body.sharpness * distances).exp()
    torch.testing.assert_close(described @ described.T, expected, atol=0.02, rtol=0)


@pytest.mark.parametrize(
    ("scale", "offset"), [(1e-3, 0.0), (1e4, 0.0), (1.0, 1e7), (1e200, 0.0), (1e-200, 0.0)]
)
def test_scale_and_offset_of_the_rows_do_not_matter(scale: float, offset: float) -> None:
    data = rows()
    moved = data * scale + offset
    expected = describe(fit(data), data)
    torch.testing.assert_close(describe(fit(moved), moved), expected, atol=1e-3, rtol=0)


def test_rows_of_one_direction_but_another_length_stay_apart() -> None:
    data = rows()
    body = fit(torch.cat([data, -data]))  # centered at 0
    near, far = body.normalize(data[:1]), body.normalize(3 * data[:1])
    assert float((near - far).norm()) > 0.1


def test_columns_are_scaled_one_by_one_only_if_units_differ() -> None:
    data = rows(width=4) - rows(width=4).mean(dim=0)
    alike = torch.tensor([1.0, 2.0, 5.0, 0.1], dtype=torch.float64)
    assert (choose_scale(data * alike) / choose_scale(data * alike)[0] == 1).all()
    meters = torch.tensor([1.0, 2.0, 5.0, 30 * UNITS], dtype=torch.float64)
    scaled = data * meters / choose_scale(data * meters)
    torch.testing.assert_close(scaled.std(dim=0), scaled.std(dim=0)[:1].expand(4))


def test_constant_rows_and_columns() -> None:
    equal = torch.ones(6, 3)
    assert describe(fit(equal, 4), equal).isfinite().all()
    data = torch.cat([rows(), torch.ones(60, 2)], dim=1)
    assert describe(fit(data), data).isfinite().all()
    assert float(neighbor_distance(equal)) > 0


def test_rows_far_from_all_landmarks() -> None:
    body = fit(rows())
    assert describe(body, torch.full((1, 5), 1e12, dtype=torch.float64)).isfinite().all()


def test_inverse_root_ignores_small_eigenvalues() -> None:
    kernel = torch.diag(torch.tensor([1.0, 4.0, 0.0]))
    root = inverse_root(kernel)
    torch.testing.assert_close(root[:2, :2].float(), torch.diag(torch.tensor([1.0, 0.5])))
    assert root.isfinite().all()
