"""Running statistics before the first step."""

import torch

from fullmatch.models.wide_resnet import WideResNet
from fullmatch.training.statistics import measure_statistics


def test_running_statistics_are_those_of_the_images() -> None:
    torch.manual_seed(0)
    network = WideResNet(4, depth=10, width=1, channels=1, norm_momentum=0.01)
    images = 3 * torch.randn(16, 1, 8, 8) + 1
    expected = network(images).logits  # of batch statistics, in which the images have mean 0
    measure_statistics(network, images)
    statistics = network.state_dict()["blocks.0.norm1.running_mean"]
    torch.testing.assert_close(statistics, network.stem(images).mean(dim=(0, 2, 3)))
    assert network.norm.momentum == 0.01
    torch.testing.assert_close(network.eval()(images).logits, expected, rtol=0.05, atol=0.05)
