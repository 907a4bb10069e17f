"""A frozen body gives the same features at every time and speed; embeddings center and reduce."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fullmatch.models.frozen import (
    DIMENSIONS,
    Embedding,
    FrozenBody,
    FrozenNetwork,
    HeadNetwork,
    fold_batch_norms,
    principal_directions,
    resize,
    unit_length,
)
from tests.frozen_runs import KNOWN_CLASSES, SIZES, tiny_model


def images(count: int = 4, side: int = 40, channels: int = 3) -> Tensor:
    return torch.randn(count, channels, side, side, generator=torch.Generator().manual_seed(1))


def random_statistics(network: nn.Module) -> None:
    """Batch norms that are not the identity, as after training."""
    generator = torch.Generator().manual_seed(2)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            for tensor in (module.weight, module.bias, module.running_mean, module.running_var):
                tensor.data.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)


def count_norms(network: nn.Module) -> int:
    return sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())


class InOrder(nn.Module):
    """A convolution with a bias, its norm, and a second pair."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.second = nn.Conv2d(6, 6, 3, padding=1, bias=False)
        self.last = nn.BatchNorm2d(6)

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.norm(self.first(images)).relu()
        return self.last(self.second(hidden)).relu()


class OutOfOrder(InOrder):
    """The same layers, but norms come before convolutions: the guess is wrong."""

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.norm(self.first(images).relu())
        return self.second(self.last(hidden).relu()).relu()


@pytest.mark.parametrize("model", ["timm:test_resnet", "timm:test_efficientnet"])
def test_folded_batch_norms_change_nothing(model: str) -> None:
    body = tiny_model(model).body
    random_statistics(body)
    before = {name: tensor.clone() for name, tensor in body.state_dict().items()}
    folded = fold_batch_norms(body, (3, 40, 40))
    assert folded is not body
    assert count_norms(body) > 5
    assert count_norms(folded) <= 1  # that of a stem is not next to its convolution
    assert torch.allclose(folded(images()), body(images()), atol=1e-5)
    after = body.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_a_bias_before_a_batch_norm_is_folded_too() -> None:
    body = FrozenBody(InOrder(), None, SIZES)
    random_statistics(body)
    folded = fold_batch_norms(body, (3, 40, 40))
    assert count_norms(folded) == 0
    assert torch.allclose(folded(images()), body(images()), atol=1e-5)


def test_a_wrong_guess_leaves_the_body_as_it_is() -> None:
    body = FrozenBody(OutOfOrder(), None, SIZES)
    random_statistics(body)
    expected = body(images())
    folded = fold_batch_norms(body, (3, 40, 40))
    assert count_norms(folded) == 2
    assert torch.equal(folded(images()), expected)


def test_gray_images_are_folded_too() -> None:
    body = tiny_model().body
    random_statistics(body)
    folded = fold_batch_norms(body, (1, 40, 40))
    gray = images(channels=1)
    assert torch.allclose(folded(gray), body(gray), atol=1e-5)
    assert torch.allclose(body(gray), body(gray.expand(-1, 3, -1, -1)), atol=1e-6)


def test_training_mode_does_not_reach_the_body() -> None:
    body = tiny_model().body
    network = FrozenNetwork(body, embedding(body), 3)
    network.train()
    assert not any(module.training for module in body.modules())
    before = {name: tensor.clone() for name, tensor in body.state_dict().items()}
    network(images()).logits.sum().backward()
    assert all(torch.equal(tensor, before[name]) for name, tensor in body.state_dict().items())
    assert not any(parameter.requires_grad for parameter in body.parameters())
    assert all(parameter.grad is None for parameter in body.parameters())
    trained = [name for name, parameter in network.named_parameters() if parameter.requires_grad]
    assert trained == ["head.weight", "head.bias"]
    assert network.head.weight.grad is not None


def test_parts_of_a_descriptor_have_length_one() -> None:
    model = tiny_model()
    features, probabilities = model.body.describe(images(), 32).split(list(model.widths), dim=1)
    assert probabilities.shape == (4, KNOWN_CLASSES)
    assert torch.allclose(features.norm(dim=1), torch.ones(4), atol=1e-5)
    assert torch.allclose(probabilities.square().sum(dim=1), torch.ones(4), atol=1e-5)


def test_descriptors_are_the_mean_over_the_sizes() -> None:
    body = tiny_model().body
    mean = (body.describe(images(), SIZES[0]) + body.describe(images(), SIZES[1])) / 2
    assert torch.allclose(body(images()), mean, atol=1e-6)


def embedding(body: FrozenBody) -> Embedding:
    with torch.no_grad():
        descriptors = body(images(20))
    return Embedding.fit(descriptors, (descriptors.shape[1] - KNOWN_CLASSES, KNOWN_CLASSES))


def test_images_and_their_embeddings_give_the_same_logits() -> None:
    body = tiny_model().body
    network = FrozenNetwork(body, embedding(body), 3).eval()
    nn.init.normal_(network.head.weight)
    nn.init.normal_(network.head.bias)
    rows = network.embedding(body(images()))[:, :, None, None]
    head = HeadNetwork(network.head.in_features, 3)
    head.head.load_state_dict(network.head.state_dict())
    expected = network(images())
    assert expected.logits.std() > 0.01
    for computed in (network(rows), head(rows)):
        assert torch.allclose(computed.logits, expected.logits, atol=1e-6)
        assert torch.allclose(computed.features, expected.features, atol=1e-6)


def test_a_new_head_is_zero() -> None:
    assert not HeadNetwork(5, 3)(torch.ones(2, 5, 1, 1)).logits.any()


def descriptors(count: int, widths: tuple[int, ...] = (30, 10)) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return 2 + torch.randn(count, sum(widths), generator=generator)


def test_embeddings_are_centered_and_every_part_has_length_one() -> None:
    rows = descriptors(50)
    fitted = Embedding.fit(rows, (30, 10))
    assert fitted.dimensions == (25, 10)
    assert torch.allclose(fitted.mean, rows.mean(dim=0))
    first, second = fitted(rows).split([25, 10], dim=1)
    for part in (first, second):
        assert torch.allclose(part.norm(dim=1), torch.ones(50), atol=1e-5)
    assert fitted(rows).mean(dim=0).abs().max() < 0.1
    assert not fitted(rows).requires_grad


def test_dimensions_are_limited() -> None:
    fitted = Embedding.fit(descriptors(600, (200, 10)), (200, 10))
    assert fitted.dimensions == (DIMENSIONS, 10)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 9])
def test_few_pictures_give_few_dimensions(count: int) -> None:
    rows = descriptors(count)
    fitted = Embedding.fit(rows, (30, 10))
    assert fitted.dimensions == (max(2, count // 2),) * 2
    assert torch.isfinite(fitted(rows)).all()
    assert torch.isfinite(fitted(descriptors(7))).all()


def test_identical_pictures_give_finite_embeddings() -> None:
    rows = descriptors(1).expand(6, -1)
    assert torch.isfinite(Embedding.fit(rows, (30, 10))(rows)).all()


def test_a_basis_without_reduction_keeps_angles() -> None:
    rows = descriptors(80, (8,))
    fitted = Embedding.fit(rows, (8,))
    centered = unit_length(rows - rows.mean(dim=0))
    embedded = fitted(rows)
    assert torch.allclose(embedded @ embedded.T, centered @ centered.T, atol=1e-4)


def test_embeddings_are_the_same_every_time() -> None:
    rows = descriptors(50)
    state = torch.get_rng_state()
    fitted = [Embedding.fit(rows, (30, 10)).state_dict() for _ in range(2)]
    assert all(torch.equal(fitted[0][name], fitted[1][name]) for name in fitted[0])
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("count", "width"), [(100, 40), (30, 60), (50, 6)])
def test_principal_directions_are_those_of_a_full_decomposition(count: int, width: int) -> None:
    rng = np.random.default_rng(0)
    scales = 0.7 ** np.arange(width)
    rotation = np.linalg.qr(rng.normal(size=(width, width)))[0]
    rows = (rng.normal(size=(count, width)) * scales) @ rotation
    found = principal_directions(torch.from_numpy(rows).float(), 5).numpy()
    expected = np.linalg.svd(rows, full_matrices=False)[2][:5].T
    assert found.shape == (width, 5)
    assert np.allclose(found.T @ found, np.eye(5), atol=1e-4)
    assert np.allclose(np.abs((found * expected).sum(axis=0)), 1, atol=1e-3)


@pytest.mark.parametrize(("side", "size"), [(40, 40), (40, 64), (40, 24), (100, 24), (96, 32)])
def test_resized_images_keep_their_mean(side: int, size: int) -> None:
    constant = torch.full((2, 3, side, side), 0.3)
    assert resize(constant, size).shape == (2, 3, size, size)
    assert torch.allclose(resize(constant, size), torch.tensor(0.3))
    checkers = (torch.arange(side)[:, None] + torch.arange(side)).remainder(2).float()
    small = resize(checkers.expand(1, 1, -1, -1), size)
    assert small.mean() == pytest.approx(0.5, abs=0.02)
    if side >= 2 * size:  # no pixel is skipped
        assert small.std() < 0.3
