"""Kernels are for compiled bfloat16 code on the GPUs on which they were measured."""

import torch
from torch import Tensor

from fullmatch.models.kernels.device import cast_like_autocast, is_hopper, use_kernels
from tests.models.kernels.tensors import BACKEND


def test_no_kernels_on_a_cpu_or_in_eager_code() -> None:
    assert not use_kernels(torch.zeros(1, 8, 2, 2, dtype=torch.bfloat16))
    assert not is_hopper(torch.device("cpu"))


def test_the_device_check_can_be_compiled() -> None:
    def check(x: Tensor) -> Tensor:
        return x + 1 if is_hopper(x.device) else x - 1

    assert torch.compile(check, fullgraph=True, backend=BACKEND)(torch.zeros(1)) == -1


def test_images_are_cast_only_under_autocast() -> None:
    x = torch.zeros(1)
    assert cast_like_autocast(x) is x
    assert cast_like_autocast(torch.zeros(1, device="meta")).is_meta
    with torch.autocast("cpu", torch.bfloat16):
        assert cast_like_autocast(x).dtype == torch.bfloat16
        assert cast_like_autocast(x.double()).dtype == torch.float64
