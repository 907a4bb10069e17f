"""Weights from a file: those of the right name and shape are taken, and nothing in it is run."""

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
from fullmatch.models import network
from fullmatch.models.weights import as_published, take

IMAGE = (3, 32, 32)
CLASSES = ("ant", "bee", "wasp")


def theirs(model: str) -> nn.Module:
    """As somebody else has trained it: no weight and no statistic is that of a new network."""
    torch.manual_seed(1)
    named = model.removeprefix("timm:")
    built: Any = timm.create_model(named) if named != model else models.get_model(model)
    for tensor in built.state_dict().values():
        tensor.copy_(torch.rand(tensor.shape) * 0.1 if tensor.is_floating_point() else tensor + 7)
    return built.eval()  # type: ignore[no-any-return]


def written(tensors: dict[str, Tensor], path: Path, wrapped: str = "") -> Path:
    plain = {name: tensor.clone().contiguous() for name, tensor in tensors.items()}
    if path.suffix == ".safetensors":
        save_file(plain, path)
    else:
        torch.save({wrapped: plain, "epoch": 3} if wrapped else plain, path)
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
    source = theirs(model)
    path = written(source.state_dict(), tmp_path / kind)
    fresh = network(model, 3, IMAGE).eval()
    before = fresh.state_dict()["head.weight"].clone()
    total = len(fresh.state_dict())
    said, left = take(path, fresh, model, CLASSES).split("; left out of the file: ")
    assert said == f"starts from {path}: {total - 2} of the {total} tensors of {model}"
    assert sorted(left.split(", ")) == [f"{head}.bias", f"{head}.weight"]
    assert torch.equal(fresh.state_dict()["head.weight"], before)
    linear = source.get_submodule(head)
    assert isinstance(linear, nn.Linear)
    pictures = torch.randn(2, *IMAGE)
    with torch.no_grad():
        torch.testing.assert_close(linear(fresh(pictures).features), source(pictures))


@pytest.mark.parametrize(
    ("wrapped", "before"),
    [("state_dict", "module."), ("model", "module._orig_mod."), ("model_ema", "module.")],
)
def test_what_training_programs_save(wrapped: str, before: str, tmp_path: Path) -> None:
    tensors = {f"{before}{n}": t for n, t in theirs("timm:test_resnet").state_dict().items()}
    path = written(tensors | {"n_averaged": torch.tensor(5)}, tmp_path / "a.pth", wrapped)
    fresh = network("timm:test_resnet", 3, IMAGE)
    said = take(path, fresh, "timm:test_resnet", CLASSES)
    assert said.endswith("left out of the file: fc.weight, fc.bias, n_averaged")
    assert torch.equal(
        fresh.state_dict()["body.conv1.0.weight"], tensors[f"{before}conv1.0.weight"]
    )


def test_averaged_weights_come_first(tmp_path: Path) -> None:
    student, teacher = (network("wrn-10-1", 3, IMAGE).state_dict() for _ in range(2))
    torch.save({"model": student, "model_ema": teacher}, tmp_path / "a.pth")
    fresh = network("wrn-10-1", 3, IMAGE)
    take(tmp_path / "a.pth", fresh, "wrn-10-1", CLASSES)
    assert torch.equal(fresh.state_dict()["stem.weight"], teacher["stem.weight"])


def test_a_head_of_the_same_shape_is_taken(tmp_path: Path) -> None:
    old = network("resnet18", 1000, IMAGE)
    path = written(theirs("resnet18").state_dict(), tmp_path / "a.pth")
    assert take(path, old, "resnet18", CLASSES).endswith("122 of the 122 tensors of resnet18")
    assert torch.equal(old.state_dict()["head.bias"], theirs("resnet18").state_dict()["fc.bias"])


def test_half_precision_and_missing_tensors(tmp_path: Path) -> None:
    old = network("wrn-10-1", 3, IMAGE).state_dict()
    kept = {n: t.half() for n, t in old.items() if n != "norm.bias"}
    fresh = network("wrn-10-1", 3, IMAGE)
    said = take(written(kept, tmp_path / "a.pth"), fresh, "wrn-10-1", CLASSES)
    assert said.endswith("; new, for want of them in it: norm.bias")
    stem = fresh.state_dict()["stem.weight"]
    assert stem.dtype == torch.float32 and torch.allclose(stem, old["stem.weight"], atol=1e-3)


def test_a_model_of_ours_helps_with_other_classes(tmp_path: Path) -> None:
    old = network("wrn-10-1", 3, IMAGE).state_dict()
    tensors = {f"network.{n}": t for n, t in old.items()} | {"algorithm.x": torch.zeros(2)}
    path = tmp_path / "model.safetensors"
    save_file(tensors, path, metadata={"fullmatch": json.dumps({"classes": ["a", "b", "c"]})})
    fresh = network("wrn-10-1", 3, IMAGE)
    head = fresh.state_dict()["head.weight"].clone()
    take(path, fresh, "wrn-10-1", CLASSES)
    assert torch.equal(fresh.state_dict()["stem.weight"], old["stem.weight"])
    assert torch.equal(fresh.state_dict()["head.weight"], head)  # its rows are of other classes
    with pytest.raises(UserError, match=f"trained on b already.*--from {tmp_path}"):
        take(path, fresh, "wrn-10-1", ("b", "z", "y"))


def test_another_network_is_named(tmp_path: Path) -> None:
    path = written(theirs("timm:test_resnet").state_dict(), tmp_path / "a.pth")
    fresh = network("resnet18", 3, IMAGE)
    before = {name: tensor.clone() for name, tensor in fresh.state_dict().items()}
    with pytest.raises(UserError) as error:
        take(path, fresh, "resnet18", CLASSES)
    assert "9 of the 122 tensors of resnet18, which expects conv1.weight of (64, 3, 7, 7)" in str(
        error.value
    )
    assert "has conv1.0.weight of (" in str(error.value) and "--model" in str(error.value)
    assert all(torch.equal(before[name], t) for name, t in fresh.state_dict().items())


class Trap:
    """What a pickle may do to whoever loads it without care."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("sprung"),))


def test_what_cannot_be_read_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = network("wrn-10-1", 3, IMAGE).state_dict()
    for name in ("half.pth", "half.safetensors"):
        path = written(whole, tmp_path / name)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    torch.save(Trap(), "trap.pth")
    torch.save(nn.Linear(2, 2), "module.pth")
    torch.save({"epoch": 3}, "empty.pth")
    torch.save([1, 2], "list.pth")
    for name, content in (("no", b""), ("text", b"hello"), ("zip", b"PK\x03\x04rest")):
        Path(f"{name}.pth").write_bytes(content)
    Path("text.safetensors").write_bytes(b"hello, this is no tensor")
    Path("run").mkdir()
    expected = {
        "half.pth": "damaged",
        "half.safetensors": "damaged",
        "text.safetensors": "damaged",
        "trap.pth": "holds code",
        "module.pth": "holds code",
        "empty.pth": "no tensors",
        "list.pth": "no tensors",
        "no.pth": "damaged",
        "text.pth": "damaged",
        "zip.pth": "damaged",
        "absent.pth": "no file of weights; check the path",
        "run": "go on from a run with --from",
    }
    for name, message in expected.items():
        with pytest.raises(UserError, match=message) as error:
            take(Path(name), network("wrn-10-1", 3, IMAGE), "wrn-10-1", CLASSES)
        assert "\n" not in str(error.value) and name in str(error.value)
    assert not Path("sprung").exists()


def test_published_weights_see_pictures_as_they_know_them() -> None:
    measured = Appearance(mean=(0.1,) * 3, std=(0.2,) * 3, flip=False, padding=2)
    imagenet = as_published(measured, network("resnet18", 3, IMAGE))
    assert imagenet.mean == (0.485, 0.456, 0.406) and imagenet.std == (0.229, 0.224, 0.225)
    assert not imagenet.flip and imagenet.padding == 2
    assert as_published(measured, network("timm:test_vit", 3, IMAGE)).mean == (0.5, 0.5, 0.5)
    assert as_published(measured, network("wrn-10-1", 3, IMAGE)) is measured
    grey = as_published(Appearance((0.1,), (0.2,)), network("resnet18", 3, (1, 32, 32)))
    assert grey.mean == pytest.approx((0.449,)) and len(grey.std) == 1
