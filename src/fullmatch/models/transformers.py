"""timm's transformers at other picture and patch sizes, and weights that were published for one."""

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

# Such as vit_small_patch2_32: a family, the side of a patch, and that of the pictures.
_SIZED = re.compile(r"(?P<family>\w+)_patch(?P<patch>\d+)_(?P<side>\d+)(?P<tag>\..+)?")


def resolve_sizes(name: str) -> tuple[str, dict[str, int]]:
    """A network that timm has, and the sizes that make it the named one.

    timm lists vit_small_patch16_224, and not vit_small_patch2_32 or vit_base_patch16_96, which
    differ in these sizes only.
    """
    import timm

    sized = _SIZED.fullmatch(name)
    if sized is None or timm.is_model(name):
        return name, {}
    patch, side = int(sized["patch"]), int(sized["side"])
    listed = [
        (int(match["patch"]) != patch, int(match["patch"]) != 16, int(match["side"]) != 224, other)
        for other in timm.list_models(f"{sized['family']}_patch*")
        if (match := _SIZED.fullmatch(other)) and match["family"] == sized["family"]
    ]
    if not listed or patch < 1 or side % patch:
        return name, {}
    *_, base = min(listed)
    return base + (sized["tag"] or ""), {"img_size": side, "patch_size": patch}


def fitting_side(name: str, sizes: Mapping[str, int], image: tuple[int, int, int]) -> int | None:
    """The side to build a network of a fixed size for, if the pictures have another one."""
    import timm

    config = timm.get_pretrained_cfg(name)
    side = image[1]
    if config is None or not config.fixed_input_size or image[1] != image[2]:
        return None
    built = sizes.get("img_size", config.input_size[1])
    patch = sizes.get("patch_size") or patch_of(name)
    return side if side != built and patch is not None and side % patch == 0 else None


def patch_of(name: str) -> int | None:
    """The side of a patch as a name has it; None where it has none."""
    found = re.search(r"_patch(\d+)", name)
    return int(found[1]) if found else None


def fit_tensors(saved: Mapping[str, Tensor], body: nn.Module, place: str) -> dict[str, Tensor]:
    """Positions and patches of published weights, resampled to the sizes of this transformer.

    `place` is where the body is in its network; names are those of the network.
    """
    own: Any = body
    fitted: dict[str, Tensor] = {}
    if not hasattr(own, "patch_embed") or not hasattr(own, "num_prefix_tokens"):
        return fitted
    from timm.layers.patch_embed import resample_patch_embed
    from timm.layers.pos_embed import resample_abs_pos_embed

    patches, positions = f"{place}.patch_embed.proj.weight", f"{place}.pos_embed"
    if patches in saved and saved[patches].ndim == 4:
        fitted[patches] = resample_patch_embed(saved[patches], list(own.patch_embed.patch_size))
    if positions in saved and saved[positions].ndim == 3 and own.pos_embed is not None:
        prefix = 0 if getattr(own, "no_embed_class", False) else own.num_prefix_tokens
        if (saved[positions].shape[1] - prefix) ** 0.5 % 1 == 0:  # else they are not a square
            fitted[positions] = resample_abs_pos_embed(
                saved[positions], list(own.patch_embed.grid_size), num_prefix_tokens=prefix
            )
    return fitted
