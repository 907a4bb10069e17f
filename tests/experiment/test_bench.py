"""The benchmark times the very step that trains."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from PIL import Image

from fullmatch.experiment.bench import StageWatch, Traffic, bench, noise
from fullmatch.experiment.settings import resolve

SMALL = ("model.name=wrn-10-1", "training.batch=4", "training.ratio=2", "training.threads=1")


def test_stages_add_up_to_the_step() -> None:
    found = bench(resolve(data="digits", assignments=SMALL), steps=5, repeats=3)
    spent = found["milliseconds"]
    assert list(spent) == ["step", "augmentation", "forward", "backward", "update"]
    assert min(spent.values()) > 0
    assert found["steps_per_second"] == pytest.approx(1e3 / spent["step"])
    assert sum(spent.values()) - spent["step"] < 10 * spent["step"]
    assert found["milliseconds_waited_for_pictures"] == 0
    assert found["algorithm"] == "fullmatch"


def test_measuring_waits_until_it_is_alone() -> None:
    seen: list[str] = []

    @contextmanager
    def alone() -> Iterator[None]:
        seen.append("in")
        yield
        seen.append("out")

    config = resolve(data="digits", assignments=SMALL)
    assert "kernels" in bench(config, steps=1, repeats=1, profile=True, alone=alone())
    assert seen == ["in", "out"]


def test_own_pictures_are_read_from_their_folder(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        for number in range(8):
            place = tmp_path / name / f"{number}.png"
            place.parent.mkdir(exist_ok=True)
            Image.new("RGB", (16, 16), (number * 20, 0, 0)).save(place)
    settings = (*SMALL, "data.size=16", "training.batch=20")
    found = bench(resolve(data=str(tmp_path), assignments=settings), steps=2, repeats=1)
    assert found["data"] == str(tmp_path)
    assert found["labeled_images"] == 16
    assert "16 labeled images are fewer than a batch of 20" in found["how"]
    assert found["milliseconds_waited_for_pictures"] >= 0


def test_watch_keeps_the_order_of_the_stages() -> None:
    watch = StageWatch(torch.device("cpu"))
    for stage in ("start", "first", "second"):
        watch(stage)
    assert list(watch.milliseconds()) == ["first", "second"]


def test_traffic_counts_each_operand_and_result_once() -> None:
    image, weight = torch.randn(1, 3, 4, 4), torch.randn(2, 3, 3, 3)
    with Traffic() as traffic:
        torch.nn.functional.conv2d(image, weight, padding=1) + 1
    assert traffic.bytes == 4 * (3 * 16 + 2 * 3 * 9 + 2 * 16)


def test_noise_has_labels_for_a_whole_batch() -> None:
    """Though CIFAR-10 has 40 by default, and 64 are asked for."""
    assert len(noise(resolve(data="cifar10")).labeled) >= 64


def test_noise_never_needs_more_labels_than_it_has() -> None:
    """ImageNet has 100,000 labels by default, its noise 2,000 images."""
    assert len(noise(resolve(data="imagenet")).labeled) == 2000
    digits = noise(resolve(data="digits", assignments=["training.batch=5000"]))
    assert len(digits.labeled) == len(digits.unlabeled) // 10 * 10
