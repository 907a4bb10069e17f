"""Weights from a file are matched by name and shape; code in the file never runs."""

import json
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torchvision import models

from fullmatch.core import Appearance
from fullmatch.errors import UserError
from fullmatch.models import build_network
from fullmatch.models.weights import load_weights, use_published_normalization

IMAGE = (3, 32, 32)
CLASSES = ("ant", "bee", "wasp")


def published_model(model: str) -> nn.Module:
    """A model in which every weight and statistic differs from a newly initialized one."""
    torch.manual_seed(1)
    timm_name = model.removeprefix("timm:")
    built: Any = timm.create_model(timm_name) if timm_name != model else models.get_model(model)
    for tensor in built.state_dict().values():
        tensor.copy_(torch.rand(tensor.shape) * 0.1 if tensor.is_floating_point() else tensor + 7)
    return built.eval()


def write_weights(tensors: dict[str, Tensor], path: Path, key: str = "") -> Path:
    plain = {name: tensor.clone().contiguous() for name, tensor in tensors.items()}
    if path.suffix == ".safetensors":
        save_file(plain, path)
    else:
        torch.save({key: plain, "epoch": 3} if key else plain, path)
    return path


@pytest.mark.parametrize("kind", ["a.safetensors", "a.pth", "a.pt", "a.bin"])
@pytest.mark.parametrize(
    ("model", "head"),
    [
        ("resnet18", "fc"),
        ("mobilenet_v3_small", "classifier.3"),
        ("timm:test_resnet", "fc"),
        ("timm:test_convnext", "head.fc"),
        ("timm:mobilenetv3_small_050", "classifier"),
    ],
)
def test_published_weights_give_the_published_features(
    model: str, head: str, kind: str, tmp_path: Path
) -> None:
    source = published_model(model)
    path = write_weights(source.state_dict(), tmp_path / kind)
    fresh = build_network(model, 3, IMAGE).eval()
    before = fresh.state_dict()["head.weight"].clone()
    total = len(fresh.state_dict())
    note, unused = load_weights(path, fresh, model, CLASSES).split("; not used from the file: ")
    assert note == f"starts from {path}: {total - 2} of the {total} tensors of {model}"
    assert sorted(unused.split(", ")) == [f"{head}.bias", f"{head}.weight"]
    assert torch.equal(fresh.state_dict()["head.weight"], before)
    linear = source.get_submodule(head)
    assert isinstance(linear, nn.Linear)
    pictures = torch.randn(2, *IMAGE)
    with torch.no_grad():
        torch.testing.assert_close(linear(fresh(pictures).features), source(pictures))


@pytest.mark.parametrize(
    ("key", "prefix"),
    [("state_dict", "module."), ("model", "module._orig_mod."), ("model_ema", "module.")],
)
def test_checkpoints_of_training_programs(key: str, prefix: str, tmp_path: Path) -> None:
    published = published_model("timm:test_resnet").state_dict()
    tensors = {f"{prefix}{name}": tensor for name, tensor in published.items()}
    path = write_weights(tensors | {"n_averaged": torch.tensor(5)}, tmp_path / "a.pth", key)
    fresh = build_network("timm:test_resnet", 3, IMAGE)
    note = load_weights(path, fresh, "timm:test_resnet", CLASSES)
    assert note.endswith("not used from the file: fc.weight, fc.bias, n_averaged")
    assert torch.equal(
        fresh.state_dict()["body.conv1.0.weight"], tensors[f"{prefix}conv1.0.weight"]
    )


def test_averaged_weights_are_preferred(tmp_path: Path) -> None:
    student, teacher = (build_network("wrn-10-1", 3, IMAGE).state_dict() for _ in range(2))
    torch.save({"model": student, "model_ema": teacher}, tmp_path / "a.pth")
    fresh = build_network("wrn-10-1", 3, IMAGE)
    load_weights(tmp_path / "a.pth", fresh, "wrn-10-1", CLASSES)
    assert torch.equal(fresh.state_dict()["stem.weight"], teacher["stem.weight"])


def test_a_head_of_the_same_shape_is_loaded(tmp_path: Path) -> None:
    fresh = build_network("resnet18", 1000, IMAGE)
    published = published_model("resnet18").state_dict()
    path = write_weights(published, tmp_path / "a.pth")
    note = load_weights(path, fresh, "resnet18", CLASSES)
    assert note.endswith("122 of the 122 tensors of resnet18")
    assert torch.equal(fresh.state_dict()["head.bias"], published["fc.bias"])


def test_half_precision_and_missing_tensors(tmp_path: Path) -> None:
    old = build_network("wrn-10-1", 3, IMAGE).state_dict()
    saved = {n: t.half() for n, t in old.items() if n != "norm.bias"}
    fresh = build_network("wrn-10-1", 3, IMAGE)
    note = load_weights(write_weights(saved, tmp_path / "a.pth"), fresh, "wrn-10-1", CLASSES)
    assert note.endswith("; not in the file, newly initialized: norm.bias")
    stem = fresh.state_dict()["stem.weight"]
    assert stem.dtype == torch.float32
    assert torch.allclose(stem, old["stem.weight"], atol=1e-3)


def test_our_own_models_load_for_other_classes_only(tmp_path: Path) -> None:
    old = build_network("wrn-10-1", 3, IMAGE).state_dict()
    tensors = {f"network.{n}": t for n, t in old.items()} | {"algorithm.x": torch.zeros(2)}
    path = tmp_path / "model.safetensors"
    save_file(tensors, path, metadata={"fullmatch": json.dumps({"classes": ["a", "b", "c"]})})
    fresh = build_network("wrn-10-1", 3, IMAGE)
    head = fresh.state_dict()["head.weight"].clone()
    load_weights(path, fresh, "wrn-10-1", CLASSES)
    assert torch.equal(fresh.state_dict()["stem.weight"], old["stem.weight"])
    assert torch.equal(fresh.state_dict()["head.weight"], head)  # belongs to other classes
    with pytest.raises(UserError, match=f"already trained on b.*--from {tmp_path}"):
        load_weights(path, fresh, "wrn-10-1", ("b", "z", "y"))


def test_weights_of_another_network_are_rejected(tmp_path: Path) -> None:
    path = write_weights(published_model("timm:test_resnet").state_dict(), tmp_path / "a.pth")
    fresh = build_network("resnet18", 3, IMAGE)
    before = {name: tensor.clone() for name, tensor in fresh.state_dict().items()}
    with pytest.raises(UserError) as error:
        load_weights(path, fresh, "resnet18", CLASSES)
    assert "9 of the 122 tensors of resnet18, which expects conv1.weight of (64, 3, 7, 7)" in str(
        error.value
    )
    assert "has conv1.0.weight of (" in str(error.value)
    assert "--model" in str(error.value)
    assert all(torch.equal(before[name], t) for name, t in fresh.state_dict().items())


class MaliciousPickle:
    """Creates a file when it is unpickled without care."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("executed"),))


def test_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = build_network("wrn-10-1", 3, IMAGE).state_dict()
    for name in ("half.pth", "half.safetensors"):
        path = write_weights(whole, tmp_path / name)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    torch.save(MaliciousPickle(), "malicious.pth")
    torch.save(nn.Linear(2, 2), "module.pth")
    torch.save({"epoch": 3}, "empty.pth")
    torch.save([1, 2], "list.pth")
    for name, content in (("empty file", b""), ("text", b"hello"), ("zip", b"PK\x03\x04rest")):
        Path(f"{name}.pth").write_bytes(content)
    Path("text.safetensors").write_bytes(b"hello, not a tensor")
    Path("run").mkdir()
    expected = {
        "half.pth": "damaged",
        "half.safetensors": "damaged",
        "text.safetensors": "damaged",
        "malicious.pth": "holds code",
        "module.pth": "holds code",
        "empty.pth": "no named tensors",
        "list.pth": "no named tensors",
        "empty file.pth": "damaged",
        "text.pth": "damaged",
        "zip.pth": "damaged",
        "absent.pth": "not a file of weights; check the path",
        "run": "start from a run with --from",
    }
    for name, message in expected.items():
        with pytest.raises(UserError, match=message) as error:
            load_weights(Path(name), build_network("wrn-10-1", 3, IMAGE), "wrn-10-1", CLASSES)
        assert "\n" not in str(error.value)
        assert name in str(error.value)
    assert not Path("executed").exists()


def test_published_weights_get_their_published_normalization() -> None:
    measured = Appearance(mean=(0.1,) * 3, std=(0.2,) * 3, flip=False, padding=2)
    imagenet = use_published_normalization(measured, build_network("resnet18", 3, IMAGE))
    assert imagenet.mean == (0.485, 0.456, 0.406)
    assert imagenet.std == (0.229, 0.224, 0.225)
    assert not imagenet.flip
    assert imagenet.padding == 2
    vit = use_published_normalization(measured, build_network("timm:test_vit", 3, IMAGE))
    assert vit.mean == (0.5, 0.5, 0.5)
    assert use_published_normalization(measured, build_network("wrn-10-1", 3, IMAGE)) is measured
    resnet = build_network("resnet18", 3, (1, 32, 32))
    gray = use_published_normalization(Appearance((0.1,), (0.2,)), resnet)
    assert gray.mean == pytest.approx((0.449,))
    assert len(gray.std) == 1
