"""Transformers at small picture sizes, with published weights resampled to them."""

from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from timm.models.vision_transformer import checkpoint_filter_fn

from fullmatch.core import Network
from fullmatch.errors import UserError
from fullmatch.models import Backbone, build_network, feature_map_shape
from fullmatch.models.transformers import fit_tensors, resolve_sizes
from fullmatch.models.weights import load_weights

TINY = "timm:vit_tiny_patch16_224"


def build_empty(name: str, side: int, *, fit: bool = True) -> Network:
    """Without memory for its weights, and without their first values."""
    with torch.device("meta"):
        return build_network(name, 2, (3, side, side), fit=fit)


@pytest.mark.parametrize(
    ("name", "base", "sizes"),
    [
        ("vit_tiny_patch2_32", "vit_tiny_patch16_224", (32, 2)),
        ("vit_small_patch2_32", "vit_small_patch16_224", (32, 2)),
        ("vit_base_patch16_96", "vit_base_patch16_224", (96, 16)),
        ("vit_base_patch8_96.augreg_in21k", "vit_base_patch8_224.augreg_in21k", (96, 8)),
        ("vit_small_patch16_224", "vit_small_patch16_224", None),
        ("resnet10t", "resnet10t", None),
        ("vit_huge_patch3_32", "vit_huge_patch3_32", None),  # 32 is not a multiple of 3
    ],
)
def test_names_with_other_sizes(name: str, base: str, sizes: tuple[int, int] | None) -> None:
    expected = {} if sizes is None else {"img_size": sizes[0], "patch_size": sizes[1]}
    assert resolve_sizes(name) == (base, expected)


@pytest.mark.parametrize(
    ("name", "side", "tokens", "width"),
    [
        ("timm:vit_tiny_patch2_32", 32, 257, 192),
        ("timm:vit_small_patch2_32", 32, 257, 384),
        ("timm:vit_base_patch16_96", 96, 37, 768),
        ("timm:vit_small_patch16_224", 224, 197, 384),
        (TINY, 96, 37, 192),  # built for the pictures
        ("timm:deit_tiny_patch16_224", 32, 5, 192),
    ],
)
def test_built_for_pictures(name: str, side: int, tokens: int, width: int) -> None:
    network = build_empty(name, side)
    assert isinstance(network, Backbone)
    assert tuple(network.get_parameter("body.pos_embed").shape) == (1, tokens, width)
    assert network.fixed_size == side
    assert feature_map_shape(network, (3, side, side)) == (width, 1, 1)


def test_a_frozen_body_keeps_its_size() -> None:
    network = build_empty(TINY, 96, fit=False)
    assert isinstance(network, Backbone)
    assert network.fixed_size == 224


@pytest.mark.parametrize(("side", "name"), [(96, TINY), (32, "timm:vit_tiny_patch8_32")])
def test_weights_are_resampled_as_timm_does(side: int, name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    published = timm.create_model("vit_tiny_patch16_224", num_classes=0, depth=1)
    torch.nn.init.normal_(published.get_parameter("pos_embed"))
    torch.save(published.state_dict(), tmp_path / "published.pth")
    network = build_network(name, 2, (3, side, side), fit=True)
    assert isinstance(network, Backbone)
    saved = {f"body.{key}": value for key, value in published.state_dict().items()}
    fitted = fit_tensors(saved, network.body, "body")
    body: Any = network.body
    expected = checkpoint_filter_fn(published.state_dict(), body)
    for key in ("pos_embed", "patch_embed.proj.weight"):
        torch.testing.assert_close(fitted[f"body.{key}"], expected[key])
    with pytest.raises(UserError, match="fits 18 of the"):  # one block of twelve
        load_weights(tmp_path / "published.pth", network, name, ())


def test_weights_from_a_file(tmp_path: Path) -> None:
    torch.manual_seed(0)
    published = timm.create_model("vit_tiny_patch16_224", num_classes=0)
    torch.save({"model": published.state_dict()}, tmp_path / "published.pth")
    network = build_network("timm:vit_tiny_patch4_16", 2, (3, 16, 16))
    note = load_weights(tmp_path / "published.pth", network, "timm:vit_tiny_patch4_16", ())
    assert "150 of the 152 tensors" in note  # all but the head
    assert feature_map_shape(network, (3, 16, 16)) == (192, 1, 1)
    assert torch.equal(
        network.get_parameter("body.blocks.3.attn.qkv.weight"),
        published.get_parameter("blocks.3.attn.qkv.weight"),
    )


@pytest.mark.parametrize("side", [8, 28, 32, 96])
@pytest.mark.parametrize(
    "name",
    [
        "convnext_tiny",
        "vgg11",
        "vit_b_16",
        "timm:eva02_tiny_patch14_224",
        "timm:levit_128s",
        "timm:mixer_s16_224",
        "timm:swin_tiny_patch4_window7_224",
        "timm:tnt_s_patch16_224",
        "timm:vit_tiny_patch16_224",
    ],
)
def test_a_size_is_taken_or_refused_in_one_line(name: str, side: int) -> None:
    refusal = None
    try:
        network = build_empty(name, side)
        assert min(feature_map_shape(network, (3, side, side))) > 0
    except UserError as error:
        refusal = str(error)
    if refusal is not None:
        assert f"{side}x{side}" in refusal
        assert "\n" not in refusal
