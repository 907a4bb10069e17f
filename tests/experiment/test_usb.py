"""USB's settings, for its data sets, with weights from a file."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import timm
import torch

from fullmatch.cli import main
from fullmatch.errors import UserError
from fullmatch.experiment.settings import resolve
from fullmatch.experiment.usb import BATCH, STEPS, USB, WARMUP, usb
from fullmatch.storage.run_folder import RunFolder
from tests.own_things import use_own_module

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| ([\d, ]+) \| `(.+)` \| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
use_module = pytest.fixture(use_own_module)
MODULE = """
import numpy as np

from fullmatch.data import from_arrays


def eurosat():
    pixels = np.random.default_rng(0).integers(0, 256, (40, 32, 32, 3), np.uint8)
    labels = np.arange(40) % 4
    return from_arrays(pixels[:32], labels[:32], pixels[32:], labels[32:], benchmark=True)
"""


def test_the_page_has_every_setting() -> None:
    page = {
        name: (tuple(map(int, labels.split(", "))), model, int(side), float(rate), float(decay))
        for name, labels, model, side, rate, decay in ROW.findall(PAGE)
    }
    assert page == {
        name: (each.labels, each.model, each.side, each.rate, each.layer_decay)
        for name, each in USB.items()
    }
    assert f"{STEPS:,} steps with {WARMUP:,} of warm-up, {BATCH} labeled" in " ".join(PAGE.split())


def test_a_benchmark_and_its_default_labels() -> None:
    config = usb("cifar100")
    assert (config.data.labels, config.data.size) == (200, None)
    assert config.model.name == "timm:vit_small_patch2_32"
    assert config.model.pretrained
    optimizer, training = config.optimizer, config.training
    assert (optimizer.name, optimizer.rate, optimizer.layer_decay) == ("adamw", 5e-4, 0.5)
    assert (training.steps, training.batch, training.ratio, training.ema) == (204_800, 8, 1, 0)
    assert (training.evaluate_every, training.evaluate_share) == (2048, 0.2)


def test_pictures_in_a_folder_are_resized() -> None:
    assert usb("photos/EuroSAT_RGB").data.size == 32
    assert usb("semi-aves").data.size == 224
    assert usb("tissuemnist.npz").data.size is None


def test_the_default_is_the_papers() -> None:
    assert resolve(data="cifar100").model.name == "wrn-28-8"
    assert resolve(data="cifar100", budget="usb").model.name == "timm:vit_small_patch2_32"


@pytest.mark.parametrize("data", ["cifar10", "photos/birds", "digits"])
def test_other_data(data: str) -> None:
    with pytest.raises(UserError, match=r"no settings for .*cifar100, stl10, eurosat"):
        resolve(data=data, budget="usb")


def test_minutes_and_budget(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "eurosat", "--budget", "usb", "--minutes", "3"])
    assert "leave --budget out" in capsys.readouterr().err


def test_training_from_weights_in_a_file(
    use_module: Callable[[str, str], None], tmp_path: Path
) -> None:
    use_module("own_usb", MODULE)
    torch.manual_seed(0)
    published = timm.create_model("vit_tiny_patch16_224", num_classes=0)
    torch.save(published.state_dict(), tmp_path / "published.pth")
    model = ["--model", "timm:vit_tiny_patch16_32", "--weights", "published.pth"]
    data = ["train", "own_usb:eurosat", "--labels", "20", "--budget", "usb"]
    main([*data, *model, "--steps", "2", "--set", "optimizer.warmup=1", "--out", "run"])
    result = RunFolder(tmp_path / "run").read_result()
    assert (result.steps, result.labels) == (2, 20)
    assert "150 of the 152 tensors" in " ".join(result.notes)
