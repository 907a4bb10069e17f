"""Shapes that the normalization kernels support."""

import pytest

from fullmatch.models.kernels.layout import can_normalize


@pytest.mark.parametrize(
    ("channels", "elements", "supported"),
    [
        (32, 128, True),
        (24, 96, False),
        (4, 16, False),
        (2048, 2048, False),
        (64, 2**31, False),
    ],
)
def test_can_normalize(channels: int, elements: int, supported: bool) -> None:
    assert can_normalize(channels, elements) == supported
