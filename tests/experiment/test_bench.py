"""The benchmark times the same step that trains."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from fullmatch.experiment.bench import (
    BenchResult,
    KernelTime,
    MachineShare,
    StageTimer,
    Traffic,
    make_noise,
    measure_speed,
)
from fullmatch.experiment.settings import resolve

SMALL = ("model.name=wrn-10-1", "training.batch=4", "training.ratio=2", "training.threads=1")


def test_stages_add_up_to_the_step() -> None:
    result = measure_speed(resolve(data="digits", assignments=SMALL), steps=5, repeats=3)
    spent = result.milliseconds
    assert list(spent) == ["step", "augmentation", "forward", "backward", "update"]
    assert min(spent.values()) > 0
    assert result.steps_per_second == pytest.approx(1e3 / spent["step"])
    assert sum(spent.values()) - spent["step"] < 10 * spent["step"]
    assert result.milliseconds_waited_for_pictures == 0
    assert result.algorithm == "fullmatch"
    assert (result.kernels, result.machine, result.copies_from_host) == (None, None, None)


def test_measuring_waits_for_the_device() -> None:
    events: list[str] = []

    @contextmanager
    def exclusive() -> Iterator[None]:
        events.append("in")
        yield
        events.append("out")

    config = resolve(data="digits", assignments=SMALL)
    result = measure_speed(config, steps=1, repeats=1, profile=True, exclusive=exclusive())
    assert result.kernels
    assert events == ["in", "out"]
    times = [kernel.milliseconds for kernel in result.kernels]
    assert times == sorted(times, reverse=True)


def test_table_is_flat_and_without_what_was_not_measured() -> None:
    """Other programs read it as JSON."""
    plain = BenchResult(
        data="digits",
        algorithm="fullmatch",
        model="wrn-10-1",
        device="CPU",
        versions={"torch": "2"},
        labeled_images=4,
        unlabeled_images=8,
        how="runs on CPU",
        steps_per_second=10.0,
        spread=0.1,
        milliseconds={"step": 100.0, "forward": 40.0},
        milliseconds_waited_for_pictures=0.0,
        seconds_to_first_step=1.0,
    )
    assert not {"kernels", "copies_from_host", "machine"} & set(plain.to_table())
    full = replace(
        plain,
        kernels=(KernelTime("Memcpy HtoD", 0.5, 2.0), KernelTime("gemm", 0.25, 3.0)),
        machine=MachineShare(1.0, 2.0, 0.5, 3.0, 4.0, 0.6, 5.0),
    )
    assert full.to_table() == plain.to_table() | {
        "kernels": [
            {"kernel": "Memcpy HtoD", "milliseconds": 0.5, "calls": 2.0},
            {"kernel": "gemm", "milliseconds": 0.25, "calls": 3.0},
        ],
        "copies_from_host": 2.0,
        "tflop_per_step": 1.0,
        "matrix_peak_tflops": 2.0,
        "share_of_matrix_peak": 0.5,
        "gb_per_step": 3.0,
        "memory_peak_tb_per_s": 4.0,
        "share_of_memory_peak": 0.6,
        "peak_memory_gib": 5.0,
    }


def test_own_pictures_are_read_from_their_folder(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        for number in range(8):
            place = tmp_path / name / f"{number}.png"
            place.parent.mkdir(exist_ok=True)
            Image.new("RGB", (16, 16), (number * 20, 0, 0)).save(place)
    settings = (*SMALL, "data.size=16", "training.batch=20")
    result = measure_speed(resolve(data=str(tmp_path), assignments=settings), steps=2, repeats=1)
    assert result.data == str(tmp_path)
    assert result.labeled_images == 16
    assert "16 labeled images are fewer than a batch of 20" in result.how
    assert result.milliseconds_waited_for_pictures >= 0


def test_timer_keeps_the_order_of_the_stages() -> None:
    timer = StageTimer(torch.device("cpu"))
    for stage in ("start", "first", "second"):
        timer(stage)
    assert list(timer.milliseconds()) == ["first", "second"]


def test_traffic_counts_each_operand_and_result_once() -> None:
    image, weight = torch.randn(1, 3, 4, 4), torch.randn(2, 3, 3, 3)
    with Traffic() as traffic:
        torch.nn.functional.conv2d(image, weight, padding=1) + 1
    assert traffic.bytes == 4 * (3 * 16 + 2 * 3 * 9 + 2 * 16)


def test_noise_has_labels_for_a_whole_batch() -> None:
    """Though CIFAR-10 has 40 labels by default, and a batch has 64."""
    assert len(make_noise(resolve(data="cifar10")).labeled) >= 64


def test_noise_never_needs_more_labels_than_it_has() -> None:
    """ImageNet has 100,000 labels by default, its noise 2,000 images."""
    assert len(make_noise(resolve(data="imagenet")).labeled) == 2000
    digits = make_noise(resolve(data="digits", assignments=["training.batch=5000"]))
    assert len(digits.labeled) == len(digits.unlabeled) // 10 * 10
