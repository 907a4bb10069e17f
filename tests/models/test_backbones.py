"""Networks of torchvision and timm are split without changing their outputs."""

import builtins
from typing import Any

import pytest
import timm
import torch
from torchvision import models

from fullmatch.errors import UserError
from fullmatch.models import MODELS, Backbone, build_network, feature_map_shape


def test_resnet50_has_its_published_size() -> None:
    with torch.device("meta"):
        model = build_network("resnet50", 1000, (3, 224, 224))
    assert sum(p.numel() for p in model.parameters()) == 25_557_032


def test_resnet_keeps_its_feature_map_and_outputs() -> None:
    torch.manual_seed(0)
    ours = build_network("resnet18", 5, (3, 64, 64)).eval()
    assert isinstance(ours, Backbone)
    theirs = models.resnet18(num_classes=5).eval()
    body = {k: v for k, v in theirs.state_dict().items() if not k.startswith("fc")}
    ours.body.load_state_dict(dict(zip(ours.body.state_dict(), body.values(), strict=True)))
    ours.head.load_state_dict(theirs.fc.state_dict())
    images = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(ours(images).logits, theirs(images))
    assert feature_map_shape(ours, (3, 64, 64)) == (512, 2, 2)


@pytest.mark.parametrize(
    "name", ["mobilenet_v3_small", "convnext_tiny", "squeezenet1_1", "vit_b_32"]
)
def test_any_torchvision_classifier(name: str) -> None:
    if name == "squeezenet1_1":
        with pytest.raises(UserError, match="no plain linear head"):
            build_network(name, 7, (3, 64, 64))
        return
    side = 224 if name.startswith("vit") else 64
    model = build_network(name, 7, (3, side, side)).eval()
    with torch.no_grad():
        output = model(torch.randn(2, 3, side, side))
    assert output.logits.shape == (2, 7)
    assert output.features.shape[1] == feature_map_shape(model, (3, side, side))[0]


def test_grayscale_is_repeated_to_three_channels() -> None:
    torch.manual_seed(0)
    model = build_network("resnet18", 3, (1, 32, 32)).eval()
    gray = torch.randn(2, 1, 32, 32)
    assert torch.equal(model(gray).logits, model(gray.repeat(1, 3, 1, 1)).logits)


def test_shape_of_map_changes_nothing() -> None:
    model = build_network("wrn-10-1", 3, (1, 8, 8))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert feature_map_shape(model, (1, 8, 8)) == (64, 2, 2)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(UserError, match=r"unknown model 'resnet81'.*did you mean 'resnet"):
        build_network("resnet81", 3, (3, 32, 32))
    with pytest.raises(UserError, match="did you mean 'wrn-28-2'"):
        build_network("wrn28-2", 3, (3, 32, 32))
    with pytest.raises(UserError, match="the depth must be 6n"):
        build_network("wrn-27-2", 3, (3, 32, 32))
    with pytest.raises(UserError, match="no pretrained weights"):
        build_network("wrn-28-2", 3, (3, 32, 32), pretrained=True)


def test_without_timm_its_networks_end_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def import_without_timm(name: str, *args: Any) -> Any:
        if name == "timm":
            raise ImportError(name)
        return real_import(name, *args)

    monkeypatch.setattr(builtins, "__import__", import_without_timm)
    with pytest.raises(UserError, match="pip install timm"):
        build_network("timm:resnet10t", 3, (3, 32, 32))


def test_timm_networks_of_several_architectures() -> None:
    for name in ("test_resnet", "test_convnext", "mobilenetv3_small_050"):
        model = build_network(f"timm:{name}", 3, (3, 32, 32)).eval()
        assert model(torch.zeros(1, 3, 32, 32)).logits.shape == (1, 3)
    with pytest.raises(UserError, match="timm has no model 'resnet81d'; did you mean 'resnet"):
        build_network("timm:resnet81d", 3, (3, 32, 32))


@pytest.mark.parametrize("name", ["resnet18", "timm:resnet10t"])
def test_without_internet_a_file_is_suggested(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: Any, **__: Any) -> None:
        raise OSError("no route to host")

    for function in ("get_model", "create_model"):
        module: Any = models if function == "get_model" else timm
        monkeypatch.setattr(module, function, unreachable)
    with pytest.raises(UserError, match=rf"no route to host.*--model {name} --weights FILE"):
        build_network(name, 3, (3, 32, 32), pretrained=True)


def test_listed_names_can_be_built() -> None:
    with torch.device("meta"):
        for name in MODELS:
            if "<" not in name:
                build_network(name, 10, (3, 32, 32))


@pytest.mark.parametrize("name", ["alexnet", "vgg11", "timm:vit_tiny_patch16_224"])
def test_images_that_a_network_does_not_take(name: str) -> None:
    network = build_network(name, 2, (3, 8, 8)).train()
    with pytest.raises(UserError, match=r"does not take images of 8x8 \(.*\); use pictures of"):
        feature_map_shape(network, (3, 8, 8))
    assert network.training
