"""Batch norm in one pass agrees with PyTorch's."""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn

from fullmatch.models.kernels.batch_norm import OnePassBatchNorm


def test_compiled_batch_norm_agrees_with_pytorch() -> None:
    torch.manual_seed(0)
    plain = OnePassBatchNorm(8, eps=1e-3, momentum=0.1)
    nn.init.normal_(plain.weight)
    compiled = deepcopy(plain)
    run = torch.compile(compiled, backend="aot_eager")
    images = 3 * torch.randn(6, 8, 5, 5) + 2
    inputs = [images.clone().requires_grad_() for _ in range(2)]
    gradient = torch.randn_like(images)
    layers: tuple[Callable[[Tensor], Tensor], ...] = (plain, run)
    for layer, x in zip(layers, inputs, strict=True):
        layer(x).backward(gradient)
    for name, tensor in plain.state_dict().items():
        torch.testing.assert_close(tensor, compiled.state_dict()[name], rtol=1e-4, atol=1e-5)
    for actual, expected in [
        (inputs[1].grad, inputs[0].grad),
        (compiled.weight.grad, plain.weight.grad),
        (compiled.bias.grad, plain.bias.grad),
        (run(images), plain(images)),
        (nn.BatchNorm2d.forward(plain, images), plain(images)),
    ]:
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_batches_are_not_counted() -> None:
    layer = OnePassBatchNorm(2)
    layer(torch.randn(3, 2, 4, 4))
    assert layer.num_batches_tracked == 0
    assert layer.running_mean is not None
    assert layer.running_mean.any()
