"""Random tensors for kernels, on a GPU if there is one; else Triton's interpreter runs them."""

from typing import Any

import torch
from torch import Tensor

from fullmatch.models.kernels.layout import channels_last

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
DTYPE = torch.bfloat16 if CUDA else torch.float32  # the interpreter does not support bfloat16
BACKEND = "inductor" if CUDA else "aot_eager"  # aot_eager does not need a C++ compiler
EPS = 1e-3
OPERATOR_CHECKS = ("test_schema", "test_faketensor", "test_autograd_registration")
# Tolerances: for images in `DTYPE`, and for what is summed over many of them.
IMAGES = {"rtol": 0.01, "atol": 0.01} if CUDA else {"rtol": 1e-4, "atol": 1e-4}
SUMS = {"rtol": 0.02, "atol": 0.1} if CUDA else {"rtol": 1e-4, "atol": 1e-3}


def random_images(*shape: int) -> Tensor:
    """Values that bfloat16 represents exactly, with a mean and variance unlike 0 and 1."""
    return channels_last((2 * torch.randn(shape) + 0.5).bfloat16().to(DEVICE, DTYPE))


def normalization_inputs(*shape: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images, a residual, weight and bias."""
    torch.manual_seed(0)
    x, residual = random_images(*shape), random_images(*shape)
    weight, bias = torch.randn(2, shape[1], device=DEVICE)
    return x, residual, weight, bias


def convolution_inputs(
    count: int, outputs: int, inputs: int, height: int, width: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Images, a gradient of their convolution, and its weight."""
    torch.manual_seed(0)
    side = (height, width)
    shapes = (count, inputs, *side), (count, outputs, *side), (outputs, inputs, 3, 3)
    x, gradient, weight = (
        channels_last(torch.randn(shape).bfloat16().to(DEVICE, DTYPE)) for shape in shapes
    )
    return x, gradient, weight


def assert_near(actual: Tensor, expected: Tensor, tolerance: dict[str, Any], name: str) -> None:
    torch.testing.assert_close(
        actual.double(), expected.double(), **tolerance, msg=lambda text: f"{name}: {text}"
    )


def relative_distance(actual: Tensor, expected: Tensor) -> float:
    return float(((actual - expected).norm() / expected.norm()).detach())
